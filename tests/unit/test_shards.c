/* A checkpoint in one safetensors file or in many: what is found where, and what is refused by name. */
#include "checkpoint_support.h"

#include "gaterq/shards.h"

static grq_error err;

static const uint64_t four[] = { 4 }, pair[] = { 2, 3 };

/* File `file` with one F32 (4) tensor per name; NULL ends the names. */
static void put_file(test_checkpoint *c, const char *file, ...)
{
    va_list names;
    va_start(names, file);
    for (const char *name; (name = va_arg(names, const char *));) test_add(c, file, name, GRQ_F32, 1, four, 1);
    va_end(names);
}

static void put_index(const test_checkpoint *c, const char *weight_map)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": 3}, \"weight_map\": %s}", weight_map);
    test_save_text(c, "model.safetensors.index.json", text);
}

static char *in_folder(const test_checkpoint *c, const char *file)
{
    static char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/%s", c->folder, file);
    return path;
}

static void assert_found(grq_shards *s, const char *name, const char *file, const test_tensor *wanted)
{
    const grq_tensor *t = NULL;
    const char *where = NULL;
    assert_ok(grq_shards_find(s, name, &t, &where, &err), &err);
    if (!t) fail_msg("%s was not found", name);
    if (!strstr(where, file)) fail_msg("%s was found in %s, not in %s", name, where, file);
    assert_int_equal(t->n_bytes, wanted->n_bytes);
    if (memcmp(t->data, wanted->bytes, wanted->n_bytes)) fail_msg("%s holds other bytes than were written", name);
}

static void a_folder_without_an_index_is_read_whole(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "plain");
    put_file(&c, "model-10.safetensors", "c", "a", NULL);
    put_file(&c, "model-2.safetensors", "b", NULL);
    test_save(&c);
    test_save_text(&c, ".hidden.safetensors", "not read");
    test_save_text(&c, "model-3.safetensors.part", "not read");
    test_save_text(&c, "README.md", "not read");
    grq_shards *s;
    assert_ok(grq_shards_open(c.folder, &s, &err), &err);
    assert_string_equal(grq_shards_path(s), c.folder);
    assert_int_equal(grq_shards_count(s), 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(grq_shards_name(s, i), ((const char *[]){ "a", "b", "c" })[i]);
    assert_null(grq_shards_name(s, 3));
    assert_found(s, "a", "/model-10.safetensors", test_tensor_of(&c, "a"));
    assert_found(s, "b", "/model-2.safetensors", test_tensor_of(&c, "b"));
    assert_found(s, "c", "/model-10.safetensors", test_tensor_of(&c, "c"));
    const grq_tensor *t;
    assert_ok(grq_shards_find(s, "d", &t, NULL, &err), &err);
    assert_null(t);
    assert_null(grq_shards_metadata(s, "any"));
    grq_shards_close(s);
    grq_shards_close(NULL);
    test_checkpoint_free(&c);
}

/* The first of two broken files that is opened is the one with the lower number; by name "model-10" comes first. */
static void files_are_taken_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    static const char *const orders[][2] = { { "model-2.safetensors", "model-10.safetensors" },
                                             { "model-00002-of-00010.safetensors", "model-00010-of-00010.safetensors" },
                                             { "a9b9.safetensors", "a9b10.safetensors" },
                                             { "a-2.safetensors", "b-1.safetensors" } };
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        test_checkpoint c;
        test_checkpoint_new(&c, "numbers");
        test_save_text(&c, orders[i][1], "broken");
        test_save_text(&c, orders[i][0], "broken");
        grq_shards *s;
        assert_refused(grq_shards_open(c.folder, &s, &err), GRQ_E_DATA, &err, orders[i][0]);
        assert_null(s);
        /* The same number written in two ways is no reason to fail or to swap files. */
        test_checkpoint_new(&c, "zeros");
        put_file(&c, "m-02.safetensors", "x", NULL);
        put_file(&c, "m-2.safetensors", "y", NULL);
        test_save(&c);
        assert_ok(grq_shards_open(c.folder, &s, &err), &err);
        assert_found(s, "x", "/m-02.safetensors", test_tensor_of(&c, "x"));
        assert_found(s, "y", "/m-2.safetensors", test_tensor_of(&c, "y"));
        grq_shards_close(s);
        test_checkpoint_free(&c);
    }
}

static void a_name_in_two_files_is_refused_with_both(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "twice");
    put_file(&c, "model-1.safetensors", "a", "b", NULL);
    put_file(&c, "model-2.safetensors", "b", NULL);
    grq_shards *s;
    assert_refused(grq_shards_open(test_save(&c), &s, &err), GRQ_E_DATA, &err, "tensor \"b\" is both in ");
    for (int i = 1; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "/model-%d.safetensors", i);
        if (!strstr(err.message, name)) fail_msg("the message does not name %s: %s", name, err.message);
    }
    test_checkpoint_free(&c);
}

static void an_index_opens_only_what_is_asked_for(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "lazy");
    put_file(&c, "model-1-of-3.safetensors", "a", "unlisted", NULL);
    put_file(&c, "model-3-of-3.safetensors", "c", NULL);
    test_save(&c);
    test_save_text(&c, "stray.safetensors", "no safetensors file, and none of the index");
    put_index(&c, "{\"b\": \"model-2-of-3.safetensors\", \"c\": \"model-3-of-3.safetensors\", "
                  "\"a\": \"model-1-of-3.safetensors\", \"z\": \"model-1-of-3.safetensors\"}");
    grq_shards *s;
    const grq_tensor *t;
    assert_ok(grq_shards_open(c.folder, &s, &err), &err);
    assert_int_equal(grq_shards_count(s), 4);
    assert_string_equal(grq_shards_name(s, 0), "a");
    assert_found(s, "a", "/model-1-of-3.safetensors", test_tensor_of(&c, "a"));
    assert_refused(grq_shards_find(s, "b", &t, NULL, &err), GRQ_E_IO, &err, "tensor b of ");
    if (!strstr(err.message, "model-2-of-3.safetensors")) fail_msg("the missing file is not named: %s", err.message);
    assert_null(t);
    assert_refused(grq_shards_find(s, "z", &t, NULL, &err), GRQ_E_DATA, &err,
                   "/model-1-of-3.safetensors: tensor \"z\" is missing, though model.safetensors.index.json says");
    assert_found(s, "c", "/model-3-of-3.safetensors", test_tensor_of(&c, "c"));
    /* What the index does not list is not part of the checkpoint. */
    assert_ok(grq_shards_find(s, "unlisted", &t, NULL, &err), &err);
    assert_null(t);
    grq_shards_close(s);
    test_checkpoint_free(&c);
}

static void a_shard_cut_short_is_refused_by_name(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "cut");
    put_file(&c, "model-1.safetensors", "a", NULL);
    put_file(&c, "model-2.safetensors", "b", NULL);
    c.index = true;
    test_save(&c);
    struct stat info;
    assert_int_equal(stat(in_folder(&c, "model-2.safetensors"), &info), 0);
    for (off_t n = info.st_size - 1; n >= 0; n = n > 32 ? n - 7 : n - 1) {
        assert_int_equal(truncate(in_folder(&c, "model-2.safetensors"), n), 0);
        grq_shards *s;
        const grq_tensor *t;
        assert_ok(grq_shards_open(c.folder, &s, &err), &err);
        assert_refused(grq_shards_find(s, "b", &t, NULL, &err), GRQ_E_DATA, &err, "/model-2.safetensors");
        assert_found(s, "a", "/model-1.safetensors", test_tensor_of(&c, "a"));
        grq_shards_close(s);
    }
    /* Without the index the whole folder is refused. */
    unlink(in_folder(&c, "model.safetensors.index.json"));
    grq_shards *s;
    assert_refused(grq_shards_open(c.folder, &s, &err), GRQ_E_DATA, &err, "/model-2.safetensors");
    test_checkpoint_free(&c);
}

static const struct {
    const char *index, *message;
} indices[] = {
    { "{\"weight_map\": {\"a\": \"../model-1.safetensors\"}}",
      "weight_map.a: \"../model-1.safetensors\" is no name of" },
    { "{\"weight_map\": {\"a\": \"/etc/x.safetensors\"}}", "\"/etc/x.safetensors\" is no name of a safetensors file" },
    { "{\"weight_map\": {\"a\": \"sub/x.safetensors\"}}", "is no name of a safetensors file in this folder" },
    { "{\"weight_map\": {\"a\": \"..\"}}", "weight_map.a: \"..\" is no name of" },
    { "{\"weight_map\": {\"a\": \"\"}}", "weight_map.a: \"\" is no name of" },
    { "{\"weight_map\": {\"a\": \".safetensors\"}}", "\".safetensors\" is no name of" },
    { "{\"weight_map\": {\"a\": \"x.bin\"}}", "\"x.bin\" is no name of" },
    { "{\"weight_map\": {\"a\": \"x.safetensors.bak\"}}", "is no name of" },
    { "{\"weight_map\": {\"a\": 7}}", "weight_map.a: must be a string" },
    { "{\"weight_map\": {\"a\": null}}", "weight_map.a: must be a string" },
    { "{\"weight_map\": [\"a\"]}", "weight_map: must be an object" },
    { "{\"metadata\": {}}", "\"weight_map\" is missing" },
    { "{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"y.safetensors\"}}", "a: appears twice" },
    { "{\"weight_map\": {\"a\": \"x.safetensors\"}, \"weight_map\": {}}", "weight_map: appears twice" },
    { "{\"weight_map\": {\"a\": \"x.safetensors\"}} {}", "text after the end" },
    { "{\"weight_map\": {\"a\": \"x.safetensors\"}", "index.json" },
    { "{\"weight_map\": {\"a\": \"x\\u0000.safetensors\"}}", "index.json" },
    { "{\"weight_map\": {\"\xFF\": \"x.safetensors\"}}", "index.json" },
    { "", "index.json" },
    { "[]", "index.json" },
};

static void an_index_is_read_strictly(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "index");
    put_file(&c, "x.safetensors", "a", NULL);
    test_save(&c);
    for (size_t i = 0; i < ARRAY_LEN(indices); i++) {
        test_save_text(&c, "model.safetensors.index.json", indices[i].index);
        grq_shards *s = NULL;
        const grq_status st = grq_shards_open(c.folder, &s, &err);
        if (st != GRQ_E_DATA || s || !strstr(err.message, indices[i].message) || !strstr(err.message, "index.json"))
            fail_msg("%s: status %d: %s (instead of %s)", indices[i].index, (int)st, st ? err.message : "accepted",
                     indices[i].message);
    }
    grq_shards *s;
    const grq_tensor *t;
    put_index(&c, "{}");
    assert_ok(grq_shards_open(c.folder, &s, &err), &err);
    assert_int_equal(grq_shards_count(s), 0);
    assert_ok(grq_shards_find(s, "a", &t, NULL, &err), &err);
    assert_null(t);
    grq_shards_close(s);
    test_checkpoint_free(&c);
}

/* A cache of downloads is made of links to files elsewhere: those are wanted. */
static void a_link_to_a_file_elsewhere_is_followed(void **state)
{
    (void)state;
    test_checkpoint real, linked;
    test_checkpoint_new(&real, "blobs");
    put_file(&real, "blob.safetensors", "a", NULL);
    test_save(&real);
    test_checkpoint_new(&linked, "snapshot");
    assert_int_equal(symlink("../blobs/blob.safetensors", in_folder(&linked, "model-1.safetensors")), 0);
    put_index(&linked, "{\"a\": \"model-1.safetensors\"}");
    grq_shards *s;
    assert_ok(grq_shards_open(linked.folder, &s, &err), &err);
    assert_found(s, "a", "/model-1.safetensors", test_tensor_of(&real, "a"));
    grq_shards_close(s);
    test_checkpoint_free(&real);
}

static void a_single_file_is_a_checkpoint_too(void **state)
{
    (void)state;
    const float numbers[] = { 1, 2, 3, 4 };
    const grq_tensor tensor = { "a", GRQ_F32, 1, { 4 }, sizeof numbers, numbers };
    const grq_metadata metadata[] = { { "who", "me" } };
    const char *const path = test_path("one.weights");
    assert_ok(grq_safetensors_write(path, &tensor, 1, metadata, 1, &err), &err);
    grq_shards *s;
    const grq_tensor *t;
    const char *file;
    assert_ok(grq_shards_open(path, &s, &err), &err);
    assert_string_equal(grq_shards_metadata(s, "who"), "me");
    assert_null(grq_shards_metadata(s, "what"));
    assert_ok(grq_shards_find(s, "a", &t, &file, &err), &err);
    assert_string_equal(file, path);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    grq_shards_close(s);
}

static void what_is_no_checkpoint_is_refused_by_path(void **state)
{
    (void)state;
    test_checkpoint c;
    grq_shards *s;
    test_checkpoint_new(&c, "empty");
    assert_refused(grq_shards_open(c.folder, &s, &err), GRQ_E_DATA, &err, "empty: no safetensors files in this folder");
    assert_refused(grq_shards_open(in_folder(&c, "gone"), &s, &err), GRQ_E_IO, &err, "empty/gone: No such file");
    assert_refused(grq_shards_open("", &s, &err), GRQ_E_IO, &err, "No such file");
    assert_int_equal(mkdir(in_folder(&c, "x.safetensors"), 0700), 0);
    assert_refused(grq_shards_open(c.folder, &s, &err), GRQ_E_IO, &err, "x.safetensors: is not a regular file");
    assert_int_equal(mkfifo(in_folder(&c, "a.safetensors"), 0600), 0); /* opening it would wait for a writer */
    assert_refused(grq_shards_open(c.folder, &s, &err), GRQ_E_IO, &err, "a.safetensors: is not a regular file");
    assert_null(s);
}

static void a_tensor_of_another_kind_is_refused_by_name(void **state)
{
    (void)state;
    test_checkpoint c;
    test_checkpoint_new(&c, "kinds");
    test_add(&c, "m.safetensors", "crooked", GRQ_U8, 1, (const uint64_t[]){ 1 }, 0);
    test_add(&c, "m.safetensors", "m", GRQ_F32, 2, pair, 1);
    test_add(&c, "m.safetensors", "s", GRQ_BF16, 0, NULL, 1);
    grq_shards *s;
    const grq_tensor *t;
    assert_ok(grq_shards_open(test_save(&c), &s, &err), &err);
    assert_ok(grq_shards_get(s, "m", GRQ_F32, 2, pair, &t, &err), &err); /* at an odd address: allowed here */
    assert_int_equal((uintptr_t)t->data % 4, 1);
    assert_memory_equal(t->data, test_tensor_of(&c, "m")->bytes, t->n_bytes);
    assert_ok(grq_shards_get(s, "s", GRQ_BF16, 0, NULL, &t, &err), &err);
    assert_refused(grq_shards_get(s, "m", GRQ_BF16, 2, pair, &t, &err), GRQ_E_DATA, &err,
                   "/m.safetensors: tensor \"m\" must be BF16 (2, 3), is F32 (2, 3)");
    assert_null(t);
    assert_refused(grq_shards_get(s, "m", GRQ_F32, 2, (const uint64_t[]){ 3, 2 }, &t, &err), GRQ_E_DATA, &err,
                   "must be F32 (3, 2), is F32 (2, 3)");
    assert_refused(grq_shards_get(s, "m", GRQ_F32, 1, (const uint64_t[]){ 6 }, &t, &err), GRQ_E_DATA, &err,
                   "must be F32 (6), is F32 (2, 3)");
    assert_refused(grq_shards_get(s, "m", GRQ_F32, 3, (const uint64_t[]){ 1, 2, 3 }, &t, &err), GRQ_E_DATA, &err,
                   "must be F32 (1, 2, 3), is F32 (2, 3)");
    assert_refused(grq_shards_get(s, "n", GRQ_F32, 2, pair, &t, &err), GRQ_E_DATA, &err,
                   "kinds: tensor \"n\" is missing");
    grq_shards_close(s);
    test_checkpoint_free(&c);
}

/* 30,000 files, one tensor each: comparing every file with every other would take minutes. Half a second, 8 s under
 * sanitizers. */
static void an_index_of_many_files_takes_no_time(void **state)
{
    (void)state;
    enum { N = 30000 };
    test_checkpoint c;
    test_checkpoint_new(&c, "many");
    char *const text = malloc(N * 64), *at = text;
    at += sprintf(at, "{\"weight_map\": {");
    for (int i = 0; i < N; i++) at += sprintf(at, "%s\"t%d\": \"model-%d.safetensors\"", i ? "," : "", i, i * 7919 % N);
    sprintf(at, "}}");
    test_save_text(&c, "model.safetensors.index.json", text);
    free(text);
    const clock_t begin = clock();
    grq_shards *s;
    const grq_tensor *t;
    assert_ok(grq_shards_open(c.folder, &s, &err), &err);
    assert_refused(grq_shards_find(s, "t3", &t, NULL, &err), GRQ_E_IO, &err, "model-23757.safetensors");
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 25) fail_msg("%.1f s", seconds);
    grq_shards_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_without_an_index_is_read_whole),
        cmocka_unit_test(files_are_taken_in_the_order_of_their_numbers),
        cmocka_unit_test(a_name_in_two_files_is_refused_with_both),
        cmocka_unit_test(an_index_opens_only_what_is_asked_for),
        cmocka_unit_test(a_shard_cut_short_is_refused_by_name),
        cmocka_unit_test(an_index_is_read_strictly),
        cmocka_unit_test(a_link_to_a_file_elsewhere_is_followed),
        cmocka_unit_test(a_single_file_is_a_checkpoint_too),
        cmocka_unit_test(what_is_no_checkpoint_is_refused_by_path),
        cmocka_unit_test(a_tensor_of_another_kind_is_refused_by_name),
        cmocka_unit_test(an_index_of_many_files_takes_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
