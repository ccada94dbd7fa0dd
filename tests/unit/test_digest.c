/* SHA-256 against FIPS 180-4's examples and the golden digest of a million a's. */
#include "support.h"

#include "gaterq/digest.h"

static grq_error err;

static void known_digests(void **state)
{
    (void)state;
    char hex[GRQ_SHA256_HEX];
    assert_ok(grq_sha256("", 0, hex, &err), &err);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_ok(grq_sha256("abc", 3, hex, &err), &err);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void files_are_streamed(void **state)
{
    (void)state;
    enum { N = 3000001 }; /* more than two of the blocks it reads */
    char *const bytes = malloc(N);
    assert_non_null(bytes);
    memset(bytes, 'a', N);
    char hex[GRQ_SHA256_HEX], whole[GRQ_SHA256_HEX];
    assert_ok(grq_sha256_file(test_write("a", bytes, 1000000), hex, &err), &err);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    bytes[N - 1] = 'b';
    assert_ok(grq_sha256_file(test_write("b", bytes, N), hex, &err), &err);
    assert_ok(grq_sha256(bytes, N, whole, &err), &err);
    assert_string_equal(hex, whole);
    free(bytes);
    assert_refused(grq_sha256_file("missing", hex, &err), GRQ_E_IO, &err, "missing: No such file");
    assert_refused(grq_sha256_file("/", hex, &err), GRQ_E_IO, &err, "/: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_digests), cmocka_unit_test(files_are_streamed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
