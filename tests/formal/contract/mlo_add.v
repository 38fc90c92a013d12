// SPDX-License-Identifier: MIT
// mlo_add: its pipeline has 5 stages
    localparam STAGES = 5;
uses pair;
