/* area: what a circuit takes of an FPGA, summed over what circuits are made of: registers, adders,
 * shifters, memories, products.
 *
 * in:  widths, depths, counts, as the Verilog modules have them.
 * out: mlo_area: LUTs, flip-flops, DSP blocks, block RAMs of 18 Kbit.
 *
 * A kernel says what it consists of (its `area`, next to its `unit`); estimate.c adds up kernels
 * and what lies between them.
 *
 * The target is AMD UltraScale+ (LUTs of 6 inputs, a carry chain of one LUT a bit, DSP48E2 of 27 x
 * 18 bits, RAMB36E2) as Yosys 0.70 maps it with `synth_xilinx -family xcup`, each kernel flattened.
 * A LUT is any of LUT1 .. LUT6, INV and SRL; a memory in LUTs counts as the LUTs it occupies.
 * Placement packs two small LUTs into one and finds room for routing, and Vivado optimises further:
 * so an estimate is rather too large than too small.
 *
 * Flip-flops are counted register by register; LUTs by structure, with the coefficients named
 * below; DSPs and memories as the mapper decides, by its own costs (mlo_area_memory). UltraRAM is
 * never inferred. `make synth SYNTH=estimate` measures the error: it draws cores at random and
 * synthesizes every kernel in them (tests/synth.py).
 *
 * example: 4 x 4 multipliers of 8 bits take 8 DSPs, and 4 requantizers of 33 bits 8 more.
 * cost: negligible: a search asks for hundreds of areas.
 */
typedef struct {
    int64_t lut;
    int64_t ff;
    int64_t dsp;
    int64_t bram; /* of 18 Kbit */
} mlo_area;

static void mlo_area_sum(mlo_area *a, const mlo_area *b) {
    a->lut += b->lut;
    a->ff += b->ff;
    a->dsp += b->dsp;
    a->bram += b->bram;
}
static void mlo_area_times(mlo_area *a, int64_t n, const mlo_area *b) {
    a->lut += n * b->lut;
    a->ff += n * b->ff;
    a->dsp += n * b->dsp;
    a->bram += n * b->bram;
}

static int64_t mlo_parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

/* LUTs a bit of selecting one of n: 4 to 1 fit a LUT; beyond, what Yosys makes of a shift by a
 * variable. */
static int64_t mlo_mux_luts(int64_t n) { return n <= 1 ? 0 : n <= 4 ? 1 : n / 2; }

/* Products of x and y bits: the mapper cuts operands that are wider than a DSP block's (26 and 17
 * bits unsigned, and the sign). */
static int64_t mlo_product_dsps(int64_t x, int64_t y) {
    int64_t wide = mlo_max(x, y), narrow = mlo_min(x, y);
    return (wide <= 27 ? 1 : mlo_parts(wide - 1, 26))
        * (narrow <= 18 ? 1 : mlo_parts(narrow - 1, 17));
}

/* Bits of a counter of n steps: the Verilog has one even for a single step. */
static int64_t mlo_counter(int64_t n) { return mlo_max(mlo_clog2(n), 1); }

/* A memory with one write and one registered read port, of words of `width` bits. Of LUTs (14 bits
 * x 32 words or 7 x 64 in 8 LUTs) or of block RAMs (as wide as 72 bits x 512 words; `block` bits,
 * with what parts that are written alone waste; they are enabled in nines, so a block has nines of
 * several rows where words need several): what costs less; costs and the price of multiplexers are
 * Yosys's. In LUTs, bits that nobody looks at vanish, but not before the choice; block RAMs have
 * their output register inside. */
static void mlo_area_words(mlo_area *a, int64_t width, int64_t used, int64_t block, int64_t words) {
    /* costs: of 8 LUTs, of a block; below times 14, so that they are whole numbers */
    enum { LUTS = 16, BRAM18 = 129, BRAM36 = 257 };
    int64_t best = INT64_MAX, luts = 0, brams = 0;
    for (int64_t wide = 14, deep = 32; deep <= 64; wide /= 2, deep *= 2) {
        int64_t rows = mlo_parts(words, deep);
        int64_t cost = rows * width * LUTS * 14 / wide + 7 * width * (rows - 1);
        if (cost < best) {
            best = cost;
            luts = 8 * rows * mlo_parts(used, wide) + used * mlo_mux_luts(rows);
        }
    }
    for (int size = 1; size <= 2; size++)
        for (int64_t wide = 36 * size, deep = 512; wide >= 1; wide /= 2, deep *= 2) {
            int64_t rows = mlo_parts(words, deep);
            int64_t lane = mlo_min(wide, 9);
            int64_t blocks = mlo_parts(rows * mlo_parts(block, lane), wide / lane);
            int64_t cost = 14 * blocks * (size == 1 ? BRAM18 : BRAM36) + 7 * width * (rows - 1);
            if (cost < best) {
                best = cost;
                luts = used * mlo_mux_luts(rows);
                brams = size * blocks;
            }
        }
    a->lut += luts;
    a->bram += brams;
    if (!brams) a->ff += used;
}
static void mlo_area_memory(mlo_area *a, int64_t width, int64_t words) {
    mlo_area_words(a, width, width, width, words);
}

/* mlo_skid: two words and the bits that say which of them count. */
static void mlo_area_skid(mlo_area *a, int64_t width) {
    a->lut += width + 6;
    a->ff += 2 * width + 2;
}

/* mlo_fifo: level, read and write counters around a memory. */
static void mlo_area_fifo(mlo_area *a, int64_t width, int64_t depth) {
    int64_t bits = mlo_clog2(depth);
    if (depth == 1) {
        a->lut += 3;
        a->ff += width + 1;
        return;
    }
    if (depth == 2) {
        mlo_area_skid(a, width);
        return;
    }
    mlo_area_memory(a, width, depth);
    a->lut += 3 * bits + 4;
    a->ff += 2 * bits + mlo_clog2(depth + 1) + 1;
}

/* mlo_width: between different numbers of lanes: gathers, sends, and a skid. */
static void mlo_area_width(mlo_area *a, int64_t bits, int64_t in, int64_t out) {
    int64_t x = in, y = out;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    int64_t up = out / x, down = in / x;
    mlo_area_skid(a, 3 + out * bits);
    if (up > 1) {
        a->lut += 7;
        a->ff += (up - 1) * in * bits + mlo_clog2(up);
    }
    if (down > 1) {
        a->lut += (down - 1) * out * bits + 7;
        a->ff += (down - 1) * out * bits + 3 + mlo_clog2(down);
    }
}

/* mlo_param: words of `width` bits of which `used` are looked at, `depth` in a bank; banks: those
 * that are resident, 0 for two in turn. */
static void mlo_area_param(
    mlo_area *a, int64_t width, int64_t used, int64_t depth, int64_t axi, int64_t banks) {
    int64_t padded = mlo_max((int64_t)1 << mlo_clog2(width), 8);
    int64_t beats = padded <= axi ? 1 : mlo_parts(width, axi);
    int64_t words = padded <= axi ? axi / padded : 1;
    int64_t rows = mlo_parts(depth, words);
    int64_t kept = mlo_min(depth, words);
    int64_t row = mlo_clog2(rows);
    int64_t all = rows * (banks ? banks : 2);
    int64_t address = mlo_clog2(all);
    /* of parts that are written alone */
    int64_t nines = (beats - 1) * mlo_parts(axi, 9) + mlo_parts(width - (beats - 1) * axi, 9);
    mlo_area_words(a, kept * width, kept * used, beats > 1 ? 9 * nines : kept * width, all);
    a->lut += 9 + row + (beats > 1 ? beats + 1 : 0) + used * mlo_mux_luts(kept);
    a->ff += 5 + row + mlo_clog2(beats) + mlo_clog2(kept);
    if (banks) {
        a->lut += 2 * address + mlo_clog2(banks + 1);
        a->ff += 2 * address + 2 * mlo_clog2(banks + 1) - 3;
    }
}

/* mlo_vector: two vectors of `depth` words, and who is where. */
static void mlo_area_vector(mlo_area *a, int64_t width, int64_t depth) {
    mlo_area_memory(a, width, 2 * depth);
    a->lut += 10 + mlo_clog2(depth);
    a->ff += 10 + mlo_clog2(depth);
}

/* mlo_tile: two tiles of words, the sideband of their tokens, counters of both sides, the requests
 * that wait. */
static void mlo_area_tile(mlo_area *a, int64_t width, int64_t beats, int64_t tile, int64_t blocks) {
    const int64_t beat = mlo_counter(beats);
    const int64_t token = mlo_counter(tile);
    const int64_t address = mlo_counter(tile * beats);
    const int64_t pass = mlo_counter(blocks);
    mlo_area_memory(a, width, 2 * tile * beats);
    mlo_area_memory(a, 3, 2 * tile);
    a->lut += 23 + 3 * (address + beat + token) + pass;
    a->ff += 13 + 2 * (address + beat) + 4 * token + pass;
}

/* mlo_untile, of `beats` a pass: likewise, and the address of the next pass. */
static void mlo_area_untile(
    mlo_area *a, int64_t width, int64_t beats, int64_t tile, int64_t blocks) {
    const int64_t beat = mlo_counter(beats);
    const int64_t whole = mlo_counter(blocks * beats);
    const int64_t token = mlo_counter(tile);
    const int64_t address = mlo_counter(tile * blocks * beats);
    const int64_t pass = mlo_counter(blocks);
    mlo_area_memory(a, width, 2 * tile * blocks * beats);
    mlo_area_memory(a, 2, 2 * tile);
    a->lut += 17 + 3 * (address + beat + whole + token) + pass;
    a->ff += 8 + 3 * address + beat + whole + 4 * token + pass;
}

/* mlo_requantize, one lane. deep: two registers behind the multiplier; shift: no multiplier. */
static void mlo_area_requantize(
    mlo_area *a, int64_t acc, int64_t mult, int64_t y, int deep, int shift) {
    int64_t product = acc + mult;
    int64_t window = 8 * mlo_parts(y + 8, 8);
    int64_t halves = deep && (acc > 27 || mult > 18);
    int64_t other = acc > 27 ? mult : acc;
    int64_t looked = shift ? acc + 2 : product;
    /* which bytes are signs; shifts by bytes and by bits; rounding, clipping */
    a->lut += 11 * looked / 10 + 4 * window + y - 10;
    a->ff += acc + 12 + window + 5 + y + 3 + y + 6;
    if (shift) {
        a->ff += acc + (deep ? acc + 6 : 0);
        return;
    }
    /* the halves of the product, added */
    if (halves) a->lut += product - 17;
    a->ff += mult + product + (halves ? other + 1 : 0) + (deep ? product + 6 : 0);
    /* in four: two more products, added, and the cross products have operands of their own */
    if (halves && other > 27) {
        a->lut += product - 5;
        a->ff += acc + product + 1;
    }
    a->dsp += halves ? mlo_product_dsps(18, other) + mlo_product_dsps(product - other - 17, other)
                     : mlo_product_dsps(acc, mult);
}

/* mlo_lookup: a copy of the table for each lane. */
static void mlo_area_lookup(
    mlo_area *a, int64_t lanes, int64_t index, int64_t bits, int64_t axi, int64_t banks) {
    mlo_area table = { 0, 0, 0, 0 };
    mlo_area_param(&table, bits, bits, (int64_t)1 << index, axi, banks);
    mlo_area_times(a, lanes, &table);
    a->lut += 6;
    a->ff += 4;
}

/* A tree of registered adders of up to four numbers (mlo_dots), carries along with them or not:
 * from `bits` of each of n numbers on. */
static void mlo_area_tree4(mlo_area *a, int64_t n, int64_t bits, int carries) {
    for (; n > 1; bits += 2) {
        int64_t nodes = mlo_parts(n, 4);
        a->lut += (n - nodes) * (bits + 1 + carries);
        a->ff += nodes * (bits + 2 + carries);
        n = nodes;
    }
}

/* A tree of registered adders of two numbers (mlo_dot, mlo_addtree). */
static void mlo_area_tree2(mlo_area *a, int64_t n, int64_t bits) {
    for (; n > 1; bits++) {
        a->lut += n / 2 * (bits + 1);
        a->ff += mlo_parts(n, 2) * (bits + 1);
        n = mlo_parts(n, 2);
    }
}
