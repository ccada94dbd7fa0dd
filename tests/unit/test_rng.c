/* The generator against numpy 1.24.2: golden SeedSequence pools, PCG64 states and draws, and default_rng values. */
#include "support.h"

#include "base/seed_sequence.h"
#include "gaterq/rng.h"

static uint64_t hex64(const char *digits)
{
    char text[17] = { 0 };
    memcpy(text, digits, 16);
    return strtoull(text, NULL, 16);
}

static void check_golden_layer(grq_json_node *layer, uint64_t bound)
{
    const uint64_t seed = test_u64(test_walk(layer, "seed"));
    uint32_t pool[GRQ_SEED_WORDS], words[8];
    grq_seed_pool((const uint32_t[]){ (uint32_t)seed, 0, 0, 0 }, pool);
    grq_seed_generate(pool, words, 8);
    for (size_t i = 0; i < GRQ_SEED_WORDS; i++)
        assert_int_equal(pool[i], test_u64(grq_json_at(test_walk(layer, "seedsequence_pool_u32"), i)));
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(words[i], test_u64(grq_json_at(test_walk(layer, "seedsequence_generate_state_u32_8"), i)));
    grq_rng rng;
    grq_rng_seed(&rng, seed);
    const char *const state = test_string(test_walk(layer, "pcg64_after_seeding.state_hex128"));
    const char *const increment = test_string(test_walk(layer, "pcg64_after_seeding.inc_hex128"));
    assert_true(rng.state_hi == hex64(state) && rng.state_lo == hex64(state + 16));
    assert_true(rng.inc_hi == hex64(increment) && rng.inc_lo == hex64(increment + 16));
    grq_json_node *const raw = test_walk(layer, "pcg64_raw_first16_dec");
    for (size_t i = 0; i < grq_json_count(raw); i++) assert_true(grq_rng_next(&rng) == test_u64(grq_json_at(raw, i)));

    grq_rng_seed(&rng, seed);
    grq_json_node *const draws = test_walk(layer, "integers_0_to_bound_exclusive");
    for (size_t i = 0; i < grq_json_count(draws); i++) {
        const uint64_t r = grq_rng_below(&rng, bound);
        assert_true(r == test_u64(grq_json_at(draws, i)));
        assert_true(2 * r + 1 == test_u64(grq_json_at(test_walk(layer, "multipliers"), i)));
    }
}

static void golden_multipliers(void **state)
{
    (void)state;
    static const char *const families[] = { "v41", "original_demo" };
    grq_json *const golden = test_golden("engram_hash.json");
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        grq_json_node *const family = test_walk(grq_json_root(golden), families[f]);
        const uint64_t bound = test_u64(test_walk(family, "multiplier_bound"));
        grq_json_node *const layers = test_walk(family, "layers");
        assert_int_equal(grq_json_count(layers), 2);
        for (size_t i = 0; i < grq_json_count(layers); i++) check_golden_layer(grq_json_at(layers, i), bound);
    }
    grq_json_close(golden);
}

/* From numpy: PCG64(seed).random_raw(3); then default_rng(seed): integers(0, 10**12) three times, integers(0, 2**63 +
 * 3, dtype=uint64) three times (every other draw is rejected there), random() twice. */
static const struct {
    uint64_t seed, raw[3], small[3], large[3];
    double uniform[2];
} numpy[] = {
    { 0U,
      { 11749869230777074271U, 4976686463289251617U, 755828109848996024U },
      { 636961687321U, 269786713763U, 40973523936U },
      { 152440531369162766U, 7501093982645987487U, 8418684267946577449U },
      { 0x1.3698f6e301db6p-1, 0x1.758092bff1053p-1 } },
    { 1U,
      { 9441442522235856127U, 17532960557476522086U, 2659275481604167885U },
      { 511821624700U, 950463696325U, 144159612719U },
      { 8749746783503398891U, 5069107050515594518U, 6949931735954725148U },
      { 0x1.13878535acff3p-1, 0x1.51a530eb452a6p-2 } },
    { 42U,
      { 14276969152011380360U, 8095878257575067585U, 15838336090824644132U },
      { 773956048555U, 438878439752U, 858597919911U },
      { 6432084778622665800U, 868632717012091125U, 8998527916616952264U },
      { 0x1.85b41a5f78b48p-1, 0x1.927705476f592p-1 } },
    { 4294967295U,
      { 4647538520743280031U, 4041050679407036418U, 5299467714154781845U },
      { 251943568044U, 219065796286U, 287284720435U },
      { 8623966220007650547U, 2539725252667830556U, 7166129097964781167U },
      { 0x1.7076f9c10ce17p-1, 0x1.bd5d0d8b7309dp-1 } },
    { 4294967296U,
      { 16412783775159424549U, 10277383025879800780U, 14774146505460541886U },
      { 889738791278U, 557138050206U, 800908086891U },
      { 8822282796967251141U, 2180411562519181161U, 7266284996147225392U },
      { 0x1.4336a40d68000p-12, 0x1.7391f98413d73p-1 } },
    { 4294967303U,
      { 14206593023844375757U, 2064693230803885548U, 3488237491050697490U },
      { 770140951003U, 111927244317U, 189097733297U },
      { 1475326886611535089U, 4627628354153279872U, 2825868196985728052U },
      { 0x1.4dacadc8e62f4p-2, 0x1.0c97924ad26d1p-1 } },
    { 1234567890123456789U,
      { 4655492881408851770U, 20944670354628289U, 17475150333397096351U },
      { 252374774800U, 1135412855U, 947329797798U },
      { 6623075252625217874U, 321926681726990504U, 1052460169158445612U },
      { 0x1.727a62be15ed6p-2, 0x1.cfb93f2ab110ap-1 } },
    { 18446744073709551615U,
      { 12544278110101001871U, 15593249672699323225U, 136562751618339402U },
      { 680026678961U, 845311758562U, 7403081599U },
      { 2940766199871733712U, 1684995573875919183U, 8399267024894303156U },
      { 0x1.05eb984a34a1fp-1, 0x1.6278da3026e65p-1 } },
};

static void same_stream_as_numpy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numpy); i++) {
        grq_rng rng;
        grq_rng_seed(&rng, numpy[i].seed);
        for (size_t k = 0; k < 3; k++) assert_true(grq_rng_next(&rng) == numpy[i].raw[k]);
        grq_rng_seed(&rng, numpy[i].seed);
        for (size_t k = 0; k < 3; k++) assert_true(grq_rng_below(&rng, 1000000000000U) == numpy[i].small[k]);
        for (size_t k = 0; k < 3; k++) assert_true(grq_rng_below(&rng, (UINT64_C(1) << 63) + 3) == numpy[i].large[k]);
        for (size_t k = 0; k < 2; k++) {
            const double u = grq_rng_uniform(&rng);
            if (u != numpy[i].uniform[k])
                fail_msg("seed %" PRIu64 ": %a, numpy %a", numpy[i].seed, u, numpy[i].uniform[k]);
        }
    }
}

/* SeedSequence([seed low, seed high, FNV-1a low, FNV-1a high]) of "corpus", from numpy. */
static void purposes_have_streams_of_their_own(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, raw[3];
    } expected[] = {
        { 7, { 5959446539447841759U, 5593249096825435420U, 10349654722706889814U } },
        { 1099511627781, { 13763405605574743119U, 8822550210622377792U, 12737506653773136825U } },
    };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        grq_rng corpus, init;
        grq_rng_seed_for(&corpus, expected[i].seed, "corpus");
        grq_rng_seed_for(&init, expected[i].seed, "init");
        for (size_t k = 0; k < 3; k++) {
            assert_true(grq_rng_next(&corpus) == expected[i].raw[k]);
            assert_true(grq_rng_next(&init) != expected[i].raw[k]);
        }
    }
}

static void below_stays_below_and_is_even(void **state)
{
    (void)state;
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    assert_true(grq_rng_below(&rng, 1) == 0);
    unsigned counts[7] = { 0 };
    enum { N = 70000 };
    for (int i = 0; i < N; i++) counts[grq_rng_below(&rng, 7)]++;
    /* 10,000 each, sigma 93: six sigma is a false alarm once in 70 million runs. */
    for (int k = 0; k < 7; k++)
        if (fabs(counts[k] - N / 7.0) > 6 * 93) fail_msg("value %d came %u times of %d", k, counts[k], N);
}

static void normal_has_its_moments(void **state)
{
    (void)state;
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    enum { N = 200000 };
    double sum = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        const double x = grq_rng_normal(&rng);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    /* Six standard errors: sqrt(1/N), sqrt(2/N), sqrt(96/N). */
    if (fabs(sum / N) > 6 * sqrt(1.0 / N) || fabs(squares / N - 1) > 6 * sqrt(2.0 / N) ||
        fabs(fourth / N - 3) > 6 * sqrt(96.0 / N))
        fail_msg("moments %g %g %g", sum / N, squares / N, fourth / N);
}

typedef struct {
    uint32_t number;
    char padding[96]; /* larger than the block that the shuffle swaps at once */
} item;

static void shuffle_permutes_evenly(void **state)
{
    (void)state;
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    enum { N = 4, ROUNDS = 24000 };
    unsigned at[N][N] = { { 0 } };
    for (int round = 0; round < ROUNDS; round++) {
        item items[N] = { { 0 } };
        for (uint32_t i = 0; i < N; i++) {
            items[i].number = i;
            memset(items[i].padding, (int)i, sizeof items[i].padding);
        }
        grq_rng_shuffle(&rng, items, N, sizeof *items);
        for (uint32_t i = 0; i < N; i++) {
            at[items[i].number][i]++;
            for (size_t b = 0; b < sizeof items[i].padding; b++) assert_int_equal(items[i].padding[b], items[i].number);
        }
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) /* 6,000 each, sigma 67 */
            if (fabs(at[i][k] - ROUNDS / (double)N) > 6 * 67) fail_msg("%d came to place %d %u times", i, k, at[i][k]);
    grq_rng_shuffle(&rng, NULL, 0, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_multipliers),
        cmocka_unit_test(same_stream_as_numpy),
        cmocka_unit_test(purposes_have_streams_of_their_own),
        cmocka_unit_test(below_stays_below_and_is_even),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(shuffle_permutes_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
