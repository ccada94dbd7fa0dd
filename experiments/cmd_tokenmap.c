/* gaterq tokenmap: raw token ids to compressed ids, from a tokenizer.json. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/tokenmap.h"

enum { N_LARGEST = 8 };

/* The classes with the most ids, the largest first and the smaller number first among equals: an insertion each. */
static size_t find_largest(const uint32_t *sizes, uint32_t n_classes, int32_t largest[N_LARGEST])
{
    size_t n = 0;
    for (uint32_t c = 0; c < n_classes; c++) {
        if (n == N_LARGEST && sizes[c] <= sizes[largest[n - 1]]) continue;
        size_t at = n < N_LARGEST ? n++ : n - 1;
        for (; at > 0 && sizes[c] > sizes[largest[at - 1]]; at--) largest[at] = largest[at - 1];
        largest[at] = (int32_t)c;
    }
    return n;
}

/* A class may be a control character, which must not steer the terminal. */
static void print_key(const char *key, size_t n_bytes)
{
    printf(" \"");
    for (size_t i = 0; i < n_bytes; i++) putchar((unsigned char)key[i] < 0x20 || key[i] == 0x7F ? '?' : key[i]);
    printf("\"");
}

static grq_status report_largest(tool_context *tool, const grq_tokenmap *map, grq_error *err)
{
    const uint32_t n_classes = grq_tokenmap_n_classes(map);
    uint32_t *const sizes = calloc(n_classes, sizeof *sizes);
    if (!sizes) return grq_fail(err, GRQ_E_NOMEM, "no memory to count %" PRIu32 " classes", n_classes);
    for (uint32_t i = 0; i < grq_tokenmap_n_ids(map); i++) sizes[grq_tokenmap_ids(map)[i]]++;
    int32_t largest[N_LARGEST];
    const size_t n = find_largest(sizes, n_classes, largest);
    grq_json_begin_array(tool->result, "largest");
    if (!tool->json) printf("largest classes:");
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *const key = grq_tokenmap_key(map, largest[i], &n_bytes);
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_i64(tool->result, "compressed_id", largest[i]);
        grq_json_put_u64(tool->result, "size", sizes[largest[i]]);
        grq_json_put_string(tool->result, "key", key); /* a NUL ends it */
        grq_json_end_object(tool->result);
        if (tool->json) continue;
        print_key(key ? key : "(reserved)", key ? n_bytes : sizeof "(reserved)" - 1);
        printf(" %" PRIu32, sizes[largest[i]]);
    }
    if (!tool->json) printf("\n");
    grq_json_end_array(tool->result);
    free(sizes);
    return GRQ_OK;
}

/* The remedies that can be told from the counts alone. */
static grq_status wrong_count(const char *path, const grq_tokenmap *map, uint64_t expected, grq_error *err)
{
    const uint32_t n_ids = grq_tokenmap_n_ids(map), n_classes = grq_tokenmap_n_classes(map);
    const uint64_t size = n_ids + (expected - n_classes);
    char remedy[160] = "";
    if (n_classes < expected && size <= GRQ_TOKENMAP_MAX_IDS)
        snprintf(remedy, sizeof remedy,
                 "; if the model has reserved ids beyond this file's, --size %" PRIu64 " adds the missing %" PRIu64,
                 size, expected - n_classes);
    return grq_fail(err, GRQ_E_DATA,
                    "%s: %" PRIu32 " ids fall into %" PRIu32 " classes, expected %" PRIu64
                    ". Another count changes every row number, so nothing was written%s. For a model with %" PRIu32
                    " compressed ids: --expect %" PRIu32,
                    path, n_ids, n_classes, expected, remedy, n_classes, n_classes);
}

static grq_status report(tool_context *tool, const grq_tokenmap *map, const char *out, grq_error *err)
{
    const uint32_t n_ids = grq_tokenmap_n_ids(map), n_reserved = grq_tokenmap_n_reserved(map);
    const bool released = strcmp(grq_tokenmap_sha256(map), GRQ_TOKENMAP_V41_SHA256) == 0;
    grq_json_put_string(tool->result, "out", out);
    grq_json_put_u64(tool->result, "n_ids", n_ids);
    grq_json_put_u64(tool->result, "n_reserved", n_reserved);
    grq_json_put_u64(tool->result, "n_classes", grq_tokenmap_n_classes(map));
    grq_json_put_string(tool->result, "sha256", grq_tokenmap_sha256(map));
    grq_json_put_bool(tool->result, "released_v41", released);
    if (!tool->json)
        printf("%s: %" PRIu32 " ids (%" PRIu32 " of them reserved) in %" PRIu32 " classes\n", out, n_ids, n_reserved,
               grq_tokenmap_n_classes(map));
    const grq_status st = report_largest(tool, map, err);
    if (st == GRQ_OK && !tool->json)
        printf("sha256 %s%s\n", grq_tokenmap_sha256(map),
               released ? ", the map of DeepSeek-V4.1-Flash as released" : "");
    return st;
}

grq_status cmd_tokenmap(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL }, *out = NULL;
    uint64_t expected = GRQ_TOKENMAP_V41_CLASSES, size = 0; /* 0: as many ids as the file has */
    const tool_option options[] = {
        { "out", "MAP", "map to write, one little-endian int32 per raw id", TOOL_TEXT, &out, true, 0, 0 },
        { "expect", "N", "classes there must be [99092, those of DeepSeek-V4.1-Flash]", TOOL_U64, &expected, false, 1,
          GRQ_TOKENMAP_MAX_IDS },
        { "size", "N", "ids of the model; those beyond the file's are reserved tokens, a class each [the file's]",
          TOOL_U64, &size, false, 1, GRQ_TOKENMAP_MAX_IDS },
    };
    const tool_command command = {
        .name = "tokenmap",
        .usage = "TOKENIZER.json --out MAP [--expect N] [--size N]",
        .summary = "Map raw token ids to the compressed ids that DeepSeek's Engram hashes.",
        .details = "Another number of classes than expected is refused: every multiplier of the hash depends on it.\n"
                   "DeepSeek-V4.1-Flash from its own tokenizer: gaterq tokenmap tokenizer.json --out v41.map\n"
                   "or from DeepSeek-V3's, which lacks 465 reserved ids: add --size 129280\n"
                   "DeepSeek-V3 itself (the original Engram's demo): add --expect 98627",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_tokenmap *map;
    st = grq_tokenmap_build(path[0], size, &map, err);
    if (st != GRQ_OK) return st;
    if (grq_tokenmap_n_classes(map) != expected) st = wrong_count(path[0], map, expected, err);
    if (st == GRQ_OK) st = grq_tokenmap_save(map, out, err);
    if (st == GRQ_OK) st = report(tool, map, out, err);
    grq_tokenmap_close(map);
    return st;
}
