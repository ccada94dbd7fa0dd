/* Statuses and their messages: the first thing a user sees when something is wrong. */
#include "support.h"

static void failing_fills_the_message(void **state)
{
    (void)state;
    grq_error err = { 0 };
    assert_int_equal(grq_fail(&err, GRQ_E_DATA, "%s: row %d", "a.tsv", 7), GRQ_E_DATA);
    assert_int_equal(err.status, GRQ_E_DATA);
    assert_string_equal(err.message, "a.tsv: row 7");
    assert_int_equal(grq_fail(NULL, GRQ_E_IO, "nobody listens"), GRQ_E_IO);
}

static void prefixes_pile_up_in_front(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_fail(&err, GRQ_E_IO, "disk full");
    assert_int_equal(grq_fail_prefix(&err, GRQ_E_DATA, "shard %d", 3), GRQ_E_IO);
    grq_fail_prefix(&err, GRQ_E_IO, "%s", "codes.safetensors");
    assert_string_equal(err.message, "codes.safetensors: shard 3: disk full");
    assert_int_equal(grq_fail_prefix(NULL, GRQ_E_DATA, "x"), GRQ_E_DATA);
}

static void a_message_may_quote_itself(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_fail(&err, GRQ_E_IO, "inner");
    grq_fail(&err, GRQ_E_IO, "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
}

static void long_messages_are_cut_visibly(void **state)
{
    (void)state;
    char text[GRQ_ERROR_BYTES + 10];
    memset(text, 'x', sizeof text);
    for (size_t n = GRQ_ERROR_BYTES - 3; n < GRQ_ERROR_BYTES + 5; n++) {
        grq_error err = { 0 };
        grq_fail(&err, GRQ_E_IO, "%.*s", (int)n, text);
        const bool cut = n >= GRQ_ERROR_BYTES;
        assert_int_equal(strlen(err.message), cut ? GRQ_ERROR_BYTES - 1 : n);
        assert_string_equal(err.message + strlen(err.message) - 3, cut ? "..." : "xxx");
    }
}

static void exit_codes_are_the_contract(void **state)
{
    (void)state;
    static const int expected[] = { 0, 1, 2, 3, 3, 3, 4, 130 };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) assert_int_equal(grq_status_exit_code((grq_status)i), expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_fills_the_message),   cmocka_unit_test(prefixes_pile_up_in_front),
        cmocka_unit_test(a_message_may_quote_itself),  cmocka_unit_test(long_messages_are_cut_visibly),
        cmocka_unit_test(exit_codes_are_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
