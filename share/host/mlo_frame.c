/* SPDX-License-Identifier: MIT
 * The frame that mlo_driver_test plays: the first one of tb/, with what the core makes of it. */
#include "mlo_driver.h"

static const uint8_t in[] = {
@IN@
};
@MASK@static const uint8_t mask[] = {
@MASK_BYTES@
@MASK@};
@REPLAY@static const uint8_t memory[] = {
@MEMORY_WORDS@
@REPLAY@};
@REPLAY_MASK@static const uint8_t memory_mask[] = {
@MEMORY_MASK@
@REPLAY_MASK@};
static const uint8_t out[] = {
@OUT@
};
@GIVEN@static const int8_t past_keys[] = {
@PAST_KEYS@
@GIVEN@}, past_values[] = {
@PAST_VALUES@
@GIVEN@}, kept_keys[] = {
@KEPT_KEYS@
@GIVEN@}, kept_values[] = {
@KEPT_VALUES@
@GIVEN@};
@JOBS@static const mlo_job jobs[] = { @JOB_LIST@ };
static const float before[] = { @BEFORE@ };
static const float around[] = { @AROUND@ };
static const float behind[] = { @BEHIND@ };

const mlo_example mlo_driver_example = {
    { { { in, sizeof in },
@MASK@        { mask, sizeof mask },
@NO_MASK@        { 0, 0 },
@REPLAY@        { memory, sizeof memory },
@NO_REPLAY@        { 0, 0 },
@REPLAY_MASK@        { memory_mask, sizeof memory_mask } },
@NO_REPLAY_MASK@        { 0, 0 } },
        0 },
@JOBS@    jobs, sizeof jobs / sizeof *jobs,
@NO_JOBS@    0, 0,
    out,
@GIVEN@    { past_keys, past_values }, { kept_keys, kept_values },
    { before, @N_BEFORE@ },
    { around, @N_AROUND@ },
    { behind, @N_BEHIND@ }
};
