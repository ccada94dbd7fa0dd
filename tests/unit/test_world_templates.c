/* Broken templates and configs of the generated world: refused by name, at once, before any text is made from them. */
#include "world_support.h"

static char *shipped_templates(void)
{
    char *text;
    size_t n;
    grq_error err;
    assert_ok(grq_file_read(GATERQ_SOURCE_DIR "/datasets/worlds/generated.json", 0, &text, &n, &err), &err);
    return text;
}

/* `text` with the first `from` replaced; the caller frees. Fails the test when there is none. Not inlined: gcc 12 then
 * takes `at` for a dangling pointer. */
static __attribute__((noinline)) char *replaced(const char *text, const char *from, const char *to)
{
    char *out;
    const char *const at = strstr(text, from);
    if (!at) fail_msg("there is no %s to replace", from);
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) >= 0);
    return out;
}

/* The status of the generated world whose templates have `from` replaced by `to`. */
static grq_status open_changed(const char *from, const char *to, grq_world **out, grq_error *err)
{
    char *const original = shipped_templates(), *const changed = replaced(original, from, to);
    const char *const path = test_write_text("templates.json", changed);
    char *const config = replaced(GENERATED_CONFIG("300", "50"), "datasets/worlds/generated.json", path);
    const grq_status st = open_world(config, out, err);
    free(config);
    free(changed);
    free(original);
    return st;
}

static void broken_templates_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        { "\"vocabulary\": \"words\"", "\"vocabulary\": \"bytes\"", "this kind of world needs \"words\"" },
        { "\"rule\": \"exact\"", "\"rule\": \"fuzzy\"", "rule \"fuzzy\" is not known" },
        { "\"prompt\": \"{q}\"", "\"prompt\": \"?\"", "prompt: \"?\" has no {q}" },
        { "\"stop\": \".\"", "\"stop\": \". .\"", "stop must be one token, not 2" },
        { "{e} worked as a {a}", "{e} worked as a", "statements[0]: \"{e} worked as a\" has no {a}" },
        { "{e} worked as a {a}", "someone was a {a}", "has no {e}" },
        { "what is the occupation of {e} ?", "what is it ?", "question: \"what is it ?\" has no {e}" },
        { "\"pool\": \"occupations\"", "\"pool\": \"jobs\"", "there is no pool \"jobs\"" },
        { "\"name\": \"person\",", "\"name\": \"person\", \"n\": 2,", "types[0]" },
        { "\"types\": [", "\"types\": [ { \"name\": \"nothing\", \"relations\": [] },", "there is no relation" },
        { "\"n_first\": 40", "\"n_first\": 1", "120 answers are wanted, 1 x 60 pairs exist" },
        { "\"two\": 0.3", "\"two\": 0.6", "sum to 1.1, more than 1" },
        { "\"nouns\": 8", "\"nouns\": 1", "generated_topics.nouns" },
        { "\"between\": \",\"", "\"betwixt\": \",\"", "between" },
        { "\"end\": \".\"", "\"end\": \".\", \"start\": \"\"", "start" },
        { "\"about\"", "\"above\"", "about" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_error err;
        grq_world *world = NULL;
        const grq_status st = open_changed(cases[i].from, cases[i].to, &world, &err);
        if (st != GRQ_E_USAGE || !strstr(err.message, cases[i].message))
            fail_msg("%s in place of %s: status %d, %s", cases[i].to, cases[i].from, (int)st,
                     st == GRQ_OK ? "(accepted)" : err.message);
        assert_null(world);
    }
}

/* 50 syllables give 2,500 names of two: 300 can be drawn, 3,000 cannot, and the search ends. */
static void names_that_run_out_are_an_error(void **state)
{
    (void)state;
    grq_error err;
    grq_world *world = NULL;
    char *const original = shipped_templates(), *const two = replaced(original, "\"two\": 0.3", "\"two\": 1");
    char *const only_two = replaced(two, "\"three\": 0.5", "\"three\": 0");
    const char *const path = test_write_text("two.json", only_two);
    char *const few = replaced(GENERATED_CONFIG("300", "50"), "datasets/worlds/generated.json", path);
    char *const many = replaced(GENERATED_CONFIG("3000", "50"), "datasets/worlds/generated.json", path);
    assert_ok(open_world(few, &world, &err), &err);
    grq_world_free(world);
    assert_refused(open_world(many, &world, &err), GRQ_E_USAGE, &err, "300000 draws gave");
    assert_null(world);
    free(few);
    free(many);
    free(only_two);
    free(two);
    free(original);
}

static void broken_configs_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        { "\"seed\":1", "\"sead\":1", "seed" },
        { "\"zipf\":0.9", "\"zipf\":0.9,\"zapf\":1", "zapf" },
        { "\"zipf\":0.9", "\"zipf\":\"steep\"", "zipf" },
        { "\"floor\":0.2", "\"floor\":-0.2", "floor" },
        { "\"shown_share\":0.5", "\"shown_share\":1.5", "shown_share" },
        { "\"n_topics\":10", "\"n_topics\":0", "n_topics" },
        { "\"n_entities\":300", "\"n_entities\":2.5", "n_entities" },
        { "\"n_entities\":300", "\"n_entities\":70000", "it needs n_syllables 52" },
        { "\"n_entities\":300", "\"n_entities\":1000000000", "needs about 5587.9 GiB" },
        { "\"n_syllables\":50", "\"n_syllables\":801", "the templates give only 800" },
        { "generated.json", "popqa.json", "this kind of world needs \"words\"" },
        { "generated.json", "missing.json", "missing.json" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_error err;
        grq_world *world = NULL;
        char *const config = replaced(GENERATED_CONFIG("300", "50"), cases[i].from, cases[i].to);
        const grq_status st = open_world(config, &world, &err);
        if (st == GRQ_OK || !strstr(err.message, cases[i].message))
            fail_msg("%s: status %d, %s", cases[i].to, (int)st, st == GRQ_OK ? "(accepted)" : err.message);
        assert_null(world);
        free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_templates_are_refused),
        cmocka_unit_test(names_that_run_out_are_an_error),
        cmocka_unit_test(broken_configs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
