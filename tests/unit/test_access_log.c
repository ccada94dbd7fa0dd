/* Access logs: what is read, what is refused and where, and verdicts on logs whose answer is known. */
#include "support.h"

#include "gaterq/analysis.h"
#include "gaterq/rng.h"

static void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("got %.17g, want %.17g", got, want);
}

static void counts_are_per_table_and_row(void **state)
{
    (void)state;
    grq_error err;
    grq_log_premise p;
    /* Table 4: row 7 three times, row 8 once. Table 9: row 7 once, row 1 twice; it must not add to table 4's row 7. */
    const char *path = test_write_text("log.csv", "table_id,row_id,scale,norm\r\n"
                                                  "4,7,0.1,2\r\n4,8,-0.9,1\r\n9,7,0.8,1\r\n4,7,0.2,2\r\n"
                                                  "9,1,1e-1,1\r\n4,7,0.3,2\r\n9,1,.2,1");
    assert_ok(grq_log_premise_run(path, 50, 1, &p, &err), &err);
    assert_true(p.has_norm && p.has_table);
    assert_int_equal(p.n_tables, 2);
    assert_int_equal(p.tables[0].table_id, 4);
    assert_int_equal(p.tables[1].table_id, 9);
    assert_int_equal(p.all.n_lookups, 7);
    assert_int_equal(p.all.n_rows, 4);
    assert_int_equal(p.tables[0].n_lookups, 4);
    assert_int_equal(p.tables[0].n_rows, 2);
    /* Table 4, scale^2 ranks 1 4 2 3 against count ranks 3 1 3 3: numpy.corrcoef. */
    close_to(p.tables[0].spearman.value, -0.7745966692414834);
    close_to(p.tables[1].spearman.value, -0.8660254037844387);
    close_to(p.tables[0].spearman_rows.value, -1);
    grq_log_premise_free(&p);
}

static void lines_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "line 1: unknown column \"\"" },
        { "row_id\n1\n", "line 1: column scale is missing" },
        { "scale,norm\n1,1\n", "line 1: column row_id is missing" },
        { "row_id,scale,weight\n", "line 1: unknown column \"weight\"" },
        { "row_id,scale,row_id\n", "line 1: column row_id is there twice" },
        { "row_id, scale\n", "line 1: unknown column \" scale\"" },
        { "row_id,scale\n", "no line follows the header" },
        { "row_id,scale\n1,0.5\n2\n", "line 3 has fewer" },
        { "row_id,scale\n1,0.5,7\n", "line 2 has more" },
        { "row_id,scale\n1,0.5\n\n2,0.5\n", "line 3, column row_id: \"\"" },
        { "row_id,scale\n-1,0.5\n", "line 2, column row_id: \"-1\" is not a whole number" },
        { "row_id,scale\n1.5,0.5\n", "line 2, column row_id: \"1.5\"" },
        { "row_id,scale\n18446744073709551616,0.5\n", "line 2, column row_id: \"18446744073709551616\"" },
        { "row_id,scale\n1,\n", "line 2, column scale: \"\"" },
        { "row_id,scale\n1,nan\n", "line 2, column scale: \"nan\" is not a decimal number" },
        { "row_id,scale\n1,inf\n", "line 2, column scale: \"inf\"" },
        { "row_id,scale\n1,0x1p3\n", "line 2, column scale: \"0x1p3\"" },
        { "row_id,scale\n1, 0.5\n", "line 2, column scale: \" 0.5\"" },
        { "row_id,scale\n1,0.5e\n", "line 2, column scale: \"0.5e\"" },
        { "row_id,scale\n1,1e200\n", "whose square is finite" },
        { "row_id,scale,norm\n1,1e100,1e100\n", "line 2: scale^2 norm^2 is not finite" },
    };
    grq_error err = { 0 };
    grq_log_premise p;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = test_write_text("bad.csv", cases[i].text);
        assert_refused(grq_log_premise_run(path, 10, 1, &p, &err), GRQ_E_DATA, &err, cases[i].message);
        assert_non_null(strstr(err.message, "bad.csv"));
    }
    static const char nul[] = "row_id,scale\n1,0\0.5\n";
    assert_refused(grq_log_premise_run(test_write("nul.csv", nul, sizeof nul - 1), 10, 1, &p, &err), GRQ_E_DATA, &err,
                   "line 2, column scale");
    assert_refused(grq_log_premise_run(test_path("absent.csv"), 10, 1, &p, &err), GRQ_E_IO, &err, "absent.csv");
}

/* Rows 0 .. 99, row r read about 1 / (r + 1) of the time; the scale follows the row's rank with power `slope`. */
static const char *write_log(double slope, uint64_t seed)
{
    enum { LINES = 20000 };
    const char *path = test_path("made.csv");
    FILE *f = fopen(path, "w");
    grq_rng rng;
    grq_rng_seed(&rng, seed);
    fprintf(f, "row_id,scale\n");
    for (int i = 0; i < LINES; i++) {
        const double row = floor(exp(grq_rng_uniform(&rng) * log(101)) - 1);
        fprintf(f, "%.0f,%.6f\n", row, pow(row + 1, slope) * (0.2 + grq_rng_uniform(&rng)));
    }
    fclose(f);
    return path;
}

static void verdicts_on_made_logs(void **state)
{
    (void)state;
    static const struct {
        double slope;
        const char *verdict;
    } cases[] = { { 0.3, "gate" }, { -0.3, "frequency" } };
    grq_error err;
    grq_log_premise p;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t seed = 5 + i;
        assert_ok(grq_log_premise_run(write_log(cases[i].slope, seed), 300, 1, &p, &err), &err);
        if (strcmp(p.verdict, cases[i].verdict))
            fail_msg("slope %g seed %" PRIu64 ": %s, %g [%g, %g]", cases[i].slope, seed, p.verdict,
                     p.all.spearman.value, p.all.spearman.low, p.all.spearman.high);
        assert_true(p.all.spearman.low < p.all.spearman.value && p.all.spearman.value < p.all.spearman.high);
        assert_true(isnan(p.all.spearman_importance.value)); /* no norms */
        grq_log_premise_free(&p);
    }
    /* A row that is alone, or all counts equal: nothing to correlate, so no verdict. */
    assert_ok(grq_log_premise_run(test_write_text("one.csv", "row_id,scale\n3,0.5\n"), 10, 1, &p, &err), &err);
    assert_string_equal(p.verdict, "undecided");
    grq_log_premise_free(&p);
    assert_ok(grq_log_premise_run(test_write_text("even.csv", "row_id,scale\n1,1\n2,2\n3,3\n"), 10, 1, &p, &err), &err);
    assert_true(isnan(p.all.spearman.value));
    assert_string_equal(p.verdict, "undecided");
    grq_log_premise_free(&p);
}

static void too_many_tables_are_a_wrong_column(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_log_premise p;
    const char *path = test_path("tables.csv");
    FILE *f = fopen(path, "w");
    fprintf(f, "row_id,scale,table_id\n");
    for (int i = 0; i < 5000; i++) fprintf(f, "1,0.5,%d\n", i);
    fclose(f);
    assert_refused(grq_log_premise_run(path, 10, 1, &p, &err), GRQ_E_DATA, &err, "table_id has 5000 different values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_per_table_and_row),
        cmocka_unit_test(lines_that_cannot_be_read_are_named),
        cmocka_unit_test(verdicts_on_made_logs),
        cmocka_unit_test(too_many_tables_are_a_wrong_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
