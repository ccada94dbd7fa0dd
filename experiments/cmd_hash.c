/* gaterq hash: row numbers of every n-gram that ends at each position. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"
#include "gaterq/hash.h"
#include "gaterq/tokenmap.h"

typedef struct {
    const char *family, *ids, *tokens, *token_map;
    uint64_t layer;
} hash_options;

static grq_status bad_id(const char *where, size_t number, const char *field, char separator, grq_error *err)
{
    const size_t length = strcspn(field, (const char[]){ separator, '\0' });
    return grq_fail(err, GRQ_E_USAGE, "%s: id number %zu, \"%.*s\", is no token id (0 to 2^31-1, or -1)", where, number,
                    length < 20 ? (int)length : 20, field);
}

/* One id per field, 0 to 2^31-1 or -1, with blanks allowed around it; fields end at `separator`. The last one may end
 * with it too when `ends_lines`, as a text file does. The caller frees *ids. */
static grq_status parse_ids(const char *where, const char *text, char separator, bool ends_lines, int32_t **ids,
                            size_t *n, grq_error *err)
{
    size_t room = 1;
    for (const char *p = text; *p; p++) room += *p == separator;
    *n = 0;
    *ids = malloc(room * sizeof **ids);
    if (!*ids) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its ids", where);
    for (const char *p = text;;) {
        p += strspn(p, " \t\r");
        char *end;
        errno = 0;
        const long value = strtol(p, &end, 10);
        const char *const after = end + strspn(end, " \t\r");
        const bool number = *p == '-' || (*p >= '0' && *p <= '9');
        if (!number || end == p || errno || value < GRQ_DEAD || value > INT32_MAX || (*after && *after != separator))
            return bad_id(where, *n + 1, p, separator, err);
        (*ids)[(*n)++] = (int32_t)value;
        if (!*after || (ends_lines && !after[1])) return GRQ_OK;
        p = after + 1;
    }
}

/* Raw ids become compressed ids; positions that are not text stay so. A map of another tokenizer would change every
 * hash silently, so it must have the family's number of classes. */
static grq_status map_ids(const char *path, const grq_geometry *g, int32_t *ids, size_t n, grq_error *err)
{
    grq_tokenmap *map = NULL;
    if (g->raw_ids) return grq_fail(err, GRQ_E_USAGE, "--token-map: family %s hashes raw ids", g->family);
    grq_status st = grq_tokenmap_open(path, 0, g->n_ids, NULL, &map, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        if (ids[i] == GRQ_DEAD) continue;
        if ((uint32_t)ids[i] >= grq_tokenmap_n_ids(map))
            st = grq_fail(err, GRQ_E_USAGE, "position %zu: raw id %" PRId32 " is not in %s, which maps %u ids", i,
                          ids[i], path, grq_tokenmap_n_ids(map));
        else ids[i] = grq_tokenmap_ids(map)[ids[i]];
    }
    grq_tokenmap_close(map);
    return st;
}

static grq_status read_ids(const hash_options *o, const grq_geometry *g, int32_t **ids, size_t *n, grq_error *err)
{
    *ids = NULL;
    if ((o->ids != NULL) == (o->tokens != NULL)) return grq_fail(err, GRQ_E_USAGE, "give either --ids or --tokens");
    grq_status st;
    if (o->ids) {
        st = parse_ids("--ids", o->ids, ',', false, ids, n, err);
    } else {
        char *text;
        size_t n_bytes;
        st = grq_file_read(o->tokens, 0, &text, &n_bytes, err);
        if (st != GRQ_OK) return st;
        if (strlen(text) != n_bytes)
            st = grq_fail(err, GRQ_E_DATA, "%s: byte %zu is 0: not a text file", o->tokens, strlen(text));
        else st = parse_ids(o->tokens, text, '\n', true, ids, n, err);
        free(text);
    }
    return st == GRQ_OK && o->token_map ? map_ids(o->token_map, g, *ids, *n, err) : st;
}

static void print_rows(tool_context *tool, const grq_geometry *g, const int64_t *rows, size_t n)
{
    grq_json_begin_array(tool->result, "rows");
    for (size_t p = 0; p < n; p++) {
        grq_json_begin_array(tool->result, NULL);
        if (!tool->json) printf("%zu:", p);
        for (uint32_t c = 0; c < g->n_columns; c++) {
            grq_json_put_i64(tool->result, NULL, rows[p * g->n_columns + c]);
            if (!tool->json) printf(" %" PRId64, rows[p * g->n_columns + c]);
        }
        if (!tool->json) printf("\n");
        grq_json_end_array(tool->result);
    }
    grq_json_end_array(tool->result);
}

grq_status cmd_hash(tool_context *tool, int argc, char **argv, grq_error *err)
{
    hash_options o = { .family = "deepseek-v41" };
    const tool_option options[] = {
        { "family", "NAME", "memory family [deepseek-v41]", TOOL_TEXT, &o.family, false, 0, 0 },
        { "layer", "L", "0-based decoder layer", TOOL_U64, &o.layer, true, 0, 100000 },
        { "ids", "LIST", "compressed ids, separated by commas; -1 is a position that is not text", TOOL_TEXT, &o.ids,
          false, 0, 0 },
        { "tokens", "FILE", "ids in a text file, one a line", TOOL_TEXT, &o.tokens, false, 0, 0 },
        { "token-map", "FILE", "raw to compressed ids (little-endian int32 each); the ids given are raw", TOOL_TEXT,
          &o.token_map, false, 0, 0 },
    };
    const tool_command command = {
        .name = "hash",
        .usage = "--family F --layer L (--ids \"1,2,-1,3\" | --tokens FILE) [--token-map FILE]",
        .summary = "Row numbers of every n-gram that ends at each position.",
        .details = "Example: gaterq hash --family deepseek-v41 --layer 1 --ids 0,3",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_geometry g;
    uint32_t layer;
    int32_t *ids = NULL;
    int64_t *rows = NULL;
    size_t n = 0;
    grq_hash_state state;
    st = grq_geometry_family(o.family, &g, err);
    if (st == GRQ_OK) st = grq_geometry_layer_index(&g, (uint32_t)o.layer, &layer, err);
    if (st == GRQ_OK) st = read_ids(&o, &g, &ids, &n, err);
    if (st == GRQ_OK) {
        rows = malloc(n * g.n_columns * sizeof *rows);
        if (!rows) st = grq_fail(err, GRQ_E_NOMEM, "no memory for the rows of %zu positions", n);
    }
    grq_hash_start(&state);
    if (st == GRQ_OK) st = grq_hash_rows(&g, layer, &state, ids, n, rows, err);
    if (st == GRQ_OK) print_rows(tool, &g, rows, n);
    free(rows);
    free(ids);
    return st;
}
