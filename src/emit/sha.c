/* sha: SHA-256 (FIPS 180-4), for the digests in manifest.json: anyone can check them with sha256sum.
 * in: bytes, in pieces.   out: 64 hexadecimal digits.   cost: about 300 MB/s; 1.5 GB/s with the
 *     instructions made for it. */
#if defined(MLO_WIDER)
#include <cpuid.h>
#include <immintrin.h>
#endif

typedef struct {
    uint32_t h[8];
    unsigned char block[64]; /* bytes that wait for more, n % 64 of them */
    uint64_t n; /* bytes so far */
    int fast; /* the processor has instructions for it */
} mlo_sha;

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t mlo_sha_k[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b,
    0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3,
    0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354,
    0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
    0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa,
    0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t mlo_sha_turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* One round; the caller renames the eight words instead of moving them. */
#define MLO_SHA_ROUND(a, b, c, d, e, f, g, h, i)                                          \
    do {                                                                                  \
        uint32_t t = h + (mlo_sha_turn(e, 6) ^ mlo_sha_turn(e, 11) ^ mlo_sha_turn(e, 25)) \
            + ((e & f) ^ (~e & g)) + mlo_sha_k[i] + w[i];                                 \
        d += t;                                                                           \
        h = t + (mlo_sha_turn(a, 2) ^ mlo_sha_turn(a, 13) ^ mlo_sha_turn(a, 22))          \
            + ((a & b) ^ (a & c) ^ (b & c));                                              \
    } while (0)

#ifdef MLO_WIDER
/* Does the processor have them (leaf 7, EBX bit 29; SSSE3 and SSE4.1 came long before)? */
static int mlo_sha_has_instructions(void) {
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    if (a < 7) return 0;
    __cpuid_count(7, 0, a, b, c, d);
    return b >> 29 & 1;
}

/* Intel's order: the state as words f e b a and h g d c; four rounds and four words of the
 * schedule at a time. */
__attribute__((target("sha,sse4.1"))) static void mlo_sha_block_fast(
    mlo_sha *s, const unsigned char *p) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)s->h), 0xB1);
    __m128i high = _mm_shuffle_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)(s->h + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xF0), w[4];
    const __m128i abef_before = abef, cdgh_before = cdgh;
    for (int i = 0; i < 16; i++) {
        __m128i now;
        if (i < 4)
            now = _mm_shuffle_epi8(
                _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
        else
            now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                           _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4)),
                w[(i + 3) & 3]);
        w[i & 3] = now;
        now = _mm_add_epi32(
            now, _mm_loadu_si128((const __m128i *)(const void *)(mlo_sha_k + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, now);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(now, 0x0E));
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1B);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xB1);
    _mm_storeu_si128((__m128i *)(void *)s->h, _mm_blend_epi16(abef, cdgh, 0xF0));
    _mm_storeu_si128((__m128i *)(void *)(s->h + 4), _mm_alignr_epi8(cdgh, abef, 8));
}
#else
static int mlo_sha_has_instructions(void) { return 0; }
static void mlo_sha_block_fast(mlo_sha *s, const unsigned char *p) {
    (void)s;
    (void)p;
}
#endif

static void mlo_sha_begin(mlo_sha *s) {
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
        0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->h, start, sizeof start);
    s->n = 0;
    s->fast = mlo_sha_has_instructions();
}

static void mlo_sha_block(mlo_sha *s, const unsigned char *p) {
    if (s->fast) {
        mlo_sha_block_fast(s, p);
        return;
    }
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = mlo_sha_turn(w[i - 15], 7) ^ mlo_sha_turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = mlo_sha_turn(w[i - 2], 17) ^ mlo_sha_turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i += 8) {
        MLO_SHA_ROUND(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], i);
        MLO_SHA_ROUND(v[7], v[0], v[1], v[2], v[3], v[4], v[5], v[6], i + 1);
        MLO_SHA_ROUND(v[6], v[7], v[0], v[1], v[2], v[3], v[4], v[5], i + 2);
        MLO_SHA_ROUND(v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[4], i + 3);
        MLO_SHA_ROUND(v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], i + 4);
        MLO_SHA_ROUND(v[3], v[4], v[5], v[6], v[7], v[0], v[1], v[2], i + 5);
        MLO_SHA_ROUND(v[2], v[3], v[4], v[5], v[6], v[7], v[0], v[1], i + 6);
        MLO_SHA_ROUND(v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[0], i + 7);
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}
#undef MLO_SHA_ROUND

/* Whole blocks are read where they lie. */
static void mlo_sha_add(mlo_sha *s, const void *bytes, size_t n) {
    const unsigned char *p = (const unsigned char *)bytes;
    while (n) {
        size_t held = (size_t)(s->n % 64), part = 64 - held < n ? 64 - held : n;
        if (part == 64)
            mlo_sha_block(s, p);
        else
            memcpy(s->block + held, p, part);
        s->n += part;
        if (part < 64 && s->n % 64 == 0) mlo_sha_block(s, s->block);
        p += part;
        n -= part;
    }
}

static void mlo_sha_end(mlo_sha *s, char hex[65]) {
    uint64_t bits = s->n * 8;
    unsigned char length[8], one = 0x80, zero = 0;
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    mlo_sha_add(s, &one, 1);
    while (s->n % 64 != 56) mlo_sha_add(s, &zero, 1);
    mlo_sha_add(s, length, 8);
    for (int i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}
