/* shuffle-v1, the order of indexplan.Shuffle(n, seed), in C99, C++ and CUDA.

   Position p of an epoch holds the index shuffle_v1_index(&s, p), with

       shuffle_v1 s = shuffle_v1_make(n, seed, 0, epoch);

   It is a keyed bijection on [0, n), 1 <= n < 2**63: a generalised Feistel network on a * b >= n
   points, with cycle walking (docs/specification.md). The bits never change. Licence: Apache-2.0. */
#ifndef INDEXPLAN_SHUFFLE_V1_H
#define INDEXPLAN_SHUFFLE_V1_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__) && !defined(__CUDACC__)
#define SHUFFLE_V1_AVX2
#include <immintrin.h>
#endif

#ifdef __CUDACC__
#define SHUFFLE_V1_BOTH static __host__ __device__ inline
#else
#define SHUFFLE_V1_BOTH static inline
#endif

/* What a number outside [0, n) has for an answer; and every number, if n is 0 or past 2**63 - 1, or
   if the epoch is past 2**32 - 1. */
#define SHUFFLE_V1_NONE (~(uint64_t)0)

typedef struct {
  uint64_t n;
  uint32_t a, b, rounds, key[48];
} shuffle_v1;

/* The two steps of numpy.random.SeedSequence: hash a word, and mix one into a pool of four. */
SHUFFLE_V1_BOTH uint32_t shuffle_v1_hash(uint32_t word, uint32_t *factor, uint32_t multiplier) {
  word ^= *factor;
  *factor *= multiplier;
  word *= *factor;
  return word ^ (word >> 16);
}

SHUFFLE_V1_BOTH void shuffle_v1_mix(uint32_t pool[4], uint32_t word, uint32_t *factor, int but) {
  for (int i = 0; i < 4; i++) {
    if (i == but) continue;
    const uint32_t hashed = shuffle_v1_hash(word, factor, 0x931E8875u);
    const uint32_t mixed = 0xCA01F9DDu * pool[i] - 0x4973F715u * hashed;
    pool[i] = mixed ^ (mixed >> 16);
  }
}

/* The shuffle of an epoch. The seed is seed_high * 2**64 + seed_low. The key words are those of
   numpy.random.SeedSequence(seed, spawn_key=(0, epoch, n)). */
SHUFFLE_V1_BOTH shuffle_v1 shuffle_v1_make(uint64_t n, uint64_t seed_low, uint64_t seed_high,
                                           uint64_t epoch) {
  const uint32_t seed[4] = {(uint32_t)seed_low, (uint32_t)(seed_low >> 32),
                            (uint32_t)seed_high, (uint32_t)(seed_high >> 32)};
  shuffle_v1 s;
  uint32_t pool[4], factor = 0x43B0D7E5u;
  uint64_t a = 0, b;
  s.n = n >> 63 || epoch >> 32 ? 0 : n;
  for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1) a |= (a | bit) * (a | bit) < s.n ? bit : 0;
  a += 1; /* the largest number whose square is below n, plus one */
  b = s.n ? (s.n - 1) / a + 1 : 2;
  s.a = (uint32_t)a;
  s.b = (uint32_t)(b + (b & 1));
  s.rounds = n < 4096 ? 24 : n < 1048576 ? 12 : 8;
  for (int i = 0; i < 4; i++) pool[i] = shuffle_v1_hash(seed[i], &factor, 0x931E8875u);
  for (int i = 0; i < 4; i++) shuffle_v1_mix(pool, pool[i], &factor, i);
  shuffle_v1_mix(pool, 0, &factor, -1);
  shuffle_v1_mix(pool, (uint32_t)epoch, &factor, -1);
  shuffle_v1_mix(pool, (uint32_t)n, &factor, -1);
  if (n >> 32) shuffle_v1_mix(pool, (uint32_t)(n >> 32), &factor, -1);
  factor = 0x8B51F9DDu;
  for (int i = 0; i < 48; i++) s.key[i] = shuffle_v1_hash(pool[i % 4], &factor, 0x58F38DEDu);
  return s;
}

/* The round function: a number in [0, m). */
SHUFFLE_V1_BOTH uint32_t shuffle_v1_f(uint32_t x, const uint32_t k[2], uint32_t m) {
  uint64_t t = (uint64_t)(x ^ k[0]) * 0xD2511F53u;
  t = (uint64_t)((uint32_t)t ^ (uint32_t)(t >> 32) ^ k[1]) * 0xCD9E8D57u;
  return (uint32_t)((uint64_t)((uint32_t)t ^ (uint32_t)(t >> 32)) * m >> 32);
}

/* x - y modulo m, for 0 <= y <= m; never a sum, which may need 33 bits. */
SHUFFLE_V1_BOTH uint32_t shuffle_v1_minus(uint32_t x, uint32_t y, uint32_t m) {
  return x - y + (x < y ? m : 0);
}

/* The index at a position. */
SHUFFLE_V1_BOTH uint64_t shuffle_v1_index(const shuffle_v1 *s, uint64_t position) {
  const uint32_t a = s->a, b = s->b;
  if (position >= s->n) return SHUFFLE_V1_NONE;
  do {
    uint32_t l = (uint32_t)(position / b), r = (uint32_t)(position % b);
    for (const uint32_t *k = s->key; k < s->key + 2 * s->rounds; k += 4) {
      l = shuffle_v1_minus(l, a - shuffle_v1_f(r, k, a), a);
      r = shuffle_v1_minus(r, b - shuffle_v1_f(l, k + 2, b), b);
    }
    position = (uint64_t)l * b + r;
  } while (position >= s->n);
  return position;
}

/* The position of an index. */
SHUFFLE_V1_BOTH uint64_t shuffle_v1_position(const shuffle_v1 *s, uint64_t index) {
  const uint32_t a = s->a, b = s->b;
  if (index >= s->n) return SHUFFLE_V1_NONE;
  do {
    uint32_t l = (uint32_t)(index / b), r = (uint32_t)(index % b);
    for (const uint32_t *k = s->key + 2 * s->rounds; k > s->key; k -= 4) {
      r = shuffle_v1_minus(r, shuffle_v1_f(l, k - 2, b), b);
      l = shuffle_v1_minus(l, shuffle_v1_f(r, k - 4, a), a);
    }
    index = (uint64_t)l * b + r;
  } while (index >= s->n);
  return index;
}

#define SHUFFLE_V1_LANES 64 /* a constant, with which gcc uses vector instructions at -O2 too */

/* x + f(y) modulo m, for each lane. */
static inline void shuffle_v1_add(uint32_t *__restrict x, const uint32_t *__restrict y,
                                  const uint32_t k[2], uint32_t m) {
#ifdef SHUFFLE_V1_AVX2 /* the same on eight lanes: even and odd ones apart, to multiply them */
#define SHUFFLE_V1_ALL(number) _mm256_set1_epi32((int)(number))
#define SHUFFLE_V1_FOLD(t) _mm256_xor_si256(t, _mm256_srli_epi64(t, 32))
  const __m256i modulus = SHUFFLE_V1_ALL(m), k0 = SHUFFLE_V1_ALL(k[0]), k1 = SHUFFLE_V1_ALL(k[1]);
  for (int i = 0; i < SHUFFLE_V1_LANES; i += 8) {
    const __m256i left = _mm256_loadu_si256((const __m256i *)(x + i));
    __m256i less, rest, t[2];
    t[0] = _mm256_loadu_si256((const __m256i *)(y + i));
    t[1] = _mm256_srli_epi64(t[0], 32);
    for (int odd = 0; odd < 2; odd++) {
      t[odd] = _mm256_mul_epu32(_mm256_xor_si256(t[odd], k0), SHUFFLE_V1_ALL(0xD2511F53u));
      t[odd] = _mm256_xor_si256(SHUFFLE_V1_FOLD(t[odd]), k1);
      t[odd] = _mm256_mul_epu32(t[odd], SHUFFLE_V1_ALL(0xCD9E8D57u));
      t[odd] = _mm256_mul_epu32(SHUFFLE_V1_FOLD(t[odd]), modulus);
    }
    less = _mm256_blend_epi32(_mm256_srli_epi64(t[0], 32), t[1], 0xAA);
    less = _mm256_sub_epi32(modulus, less);
    rest = _mm256_cmpeq_epi32(_mm256_max_epu32(left, less), left); /* where left >= less */
    rest = _mm256_andnot_si256(rest, modulus);
    rest = _mm256_add_epi32(_mm256_sub_epi32(left, less), rest);
    _mm256_storeu_si256((__m256i *)(x + i), rest);
  }
#else
  for (int i = 0; i < SHUFFLE_V1_LANES; i++)
    x[i] = shuffle_v1_minus(x[i], m - shuffle_v1_f(y[i], k, m), m);
#endif
}

/* Write the indices at the positions start, start + 1, ..., start + num - 1. On the host. */
static inline void shuffle_v1_fill(const shuffle_v1 *s, uint64_t start, size_t num,
                                   uint64_t *out) {
  const uint64_t left = start < s->n ? s->n - start : 0;
  const size_t inside = num < left ? num : (size_t)left;
  const uint32_t a = s->a, b = s->b;
  uint32_t l[SHUFFLE_V1_LANES], r[SHUFFLE_V1_LANES];
  for (size_t done = 0; done < inside; done += SHUFFLE_V1_LANES) {
    const size_t count = inside - done < SHUFFLE_V1_LANES ? inside - done : SHUFFLE_V1_LANES;
    uint64_t quotient = (start + done) / b, rest = (start + done) % b, outside = 0;
    for (int i = 0; i < SHUFFLE_V1_LANES; i++) {
      l[i] = (uint32_t)quotient;
      r[i] = (uint32_t)rest++;
      if (rest == b) quotient++, rest = 0;
    }
    for (const uint32_t *k = s->key; k < s->key + 2 * s->rounds; k += 4) {
      shuffle_v1_add(l, r, k, a);
      shuffle_v1_add(r, l, k + 2, b);
    }
    for (size_t i = 0; i < count; i++) {
      out[done + i] = (uint64_t)l[i] * b + r[i];
      outside |= out[done + i] >= s->n;
    }
    for (size_t i = 0; outside && i < count; i++) /* walk on, as shuffle_v1_index does */
      if (out[done + i] >= s->n) out[done + i] = shuffle_v1_index(s, start + done + i);
  }
  for (size_t i = inside; i < num; i++) out[i] = SHUFFLE_V1_NONE;
}

#endif
