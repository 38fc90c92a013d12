/* SPDX-License-Identifier: MIT
 * The registers of mlo_top, 32 bits each, by byte offset. */
#ifndef MLO_REGS_H
#define MLO_REGS_H
#define MLO_REG_ID           0x000   /* 0x4D4C4F31 */
#define MLO_REG_VERSION      0x004   /* of the register map */
#define MLO_REG_CONTROL      0x008   /* bit 0 enable, bit 1 soft reset of the core, bit 2 clear counters */
#define MLO_REG_STATUS       0x00C   /* bit 0 frames inside; sticky: bit 1 bus error, bit 2 a job was refused, bit 4 a frame had not its job's tokens */
#define MLO_REG_BASE_LOW     0x010   /* byte address of params.bin in memory */
#define MLO_REG_BASE_HIGH    0x014   /* its upper half */
#define MLO_REG_ITERATIONS   0x018   /* layers to run, @DEEPEST@ at most */
#define MLO_REG_FRAMES       0x01C   /* frames in flight */
/* of a core with a cache, jobs: write A, then B, which orders it; then send its tokens on s_axis, tlast on the last one */
#define MLO_REG_JOB_A        0x020   /* bits 31:24 slot, bits 23:0 position of the first token */
#define MLO_REG_JOB_B        0x024   /* bits 15:0 tokens; refused (SLVERR) while MLO_REG_JOB_ROOM is 0 */
/* of a core of token ids (--tokens): bits 31:16 of JOB_B are how many ids that are said go on inside as the next token */
#define MLO_REG_STOP         0x05C   /* the id that ends a text; after reset none does */
#define MLO_REG_JOB_ROOM     0x028   /* jobs that can be ordered now */
#define MLO_REG_CONTEXT      0x03C   /* bits 31:24 slots, bits 23:0 positions of each; 0: the core has no cache */
/* of a core whose cache lies in memory (--kv dram), as the manifest's kv says */
#define MLO_REG_KV_BASE_LOW  0x02C   /* byte address, a multiple of a beat */
#define MLO_REG_KV_BASE_HIGH 0x030   /* its upper half */
#define MLO_REG_KV_READ      0x04C   /* beats read since the soft reset */
#define MLO_REG_KV_WRITTEN   0x050   /* beats written */
#define MLO_REG_CYCLES       0x040   /* since the first input beat */
#define MLO_REG_DONE         0x044   /* frames finished */
#define MLO_REG_PARAM_BEATS  0x048   /* parameter beats read */
/* cycles each kernel was busy, starved for input or parameters, blocked by what follows it */
@KERNELS@
#endif
