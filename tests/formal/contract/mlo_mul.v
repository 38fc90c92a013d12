// SPDX-License-Identifier: MIT
// mlo_mul: its pipeline has 7 stages
    localparam STAGES = 7;
uses pair;
