/* Finished maps and tokenizer.json: the same bytes go to both readers. What is built must open as a finished map. */
#include "gaterq/tokenmap.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gaterq/geometry.h"

static void use(const grq_tokenmap *map)
{
    const uint32_t n = grq_tokenmap_n_ids(map), n_classes = grq_tokenmap_n_classes(map);
    const int32_t *const ids = grq_tokenmap_ids(map);
    fuzz_require(n > 0 && n_classes > 0 && n_classes <= n, "more classes than ids, or none");
    int32_t *const raw = malloc((n + 1) * sizeof *raw), *const out = malloc(n * sizeof *out);
    fuzz_require(raw && out, "no memory for the ids");
    for (uint32_t i = 0; i < n; i++) {
        fuzz_require(ids[i] >= 0 && (uint32_t)ids[i] < n_classes, "a class outside the number of classes");
        raw[i] = (int32_t)i;
    }
    grq_error err;
    fuzz_require(grq_tokenmap_apply(map, -1, raw, n, out, &err) == GRQ_OK, "the map's own ids are refused");
    fuzz_require(!memcmp(out, ids, n * sizeof *out), "applying a map gives other ids than the map");
    fuzz_require(grq_tokenmap_apply(map, 0, raw, n, out, &err) == GRQ_OK && out[0] == GRQ_DEAD, "id 0 is not dead");
    raw[n] = (int32_t)n;
    fuzz_refused(grq_tokenmap_apply(map, -1, raw + n, 1, out, &err), &err);
    raw[n] = -1;
    fuzz_refused(grq_tokenmap_apply(map, -1, raw + n, 1, out, &err), &err);
    for (int32_t c = -1; c <= (int32_t)n_classes; c++) {
        size_t n_bytes;
        const char *const key = grq_tokenmap_key(map, c, &n_bytes);
        if (!key) continue;
        fuzz_touch(key, n_bytes + 1);
        fuzz_require(key[n_bytes] == '\0', "no NUL behind a key");
    }
    free(out);
    free(raw);
}

static void open_map(const void *bytes, size_t n_bytes, const grq_tokenmap *same)
{
    grq_tokenmap *map;
    grq_error err;
    const grq_status st =
        grq_tokenmap_open(fuzz_file(bytes, n_bytes), same ? grq_tokenmap_n_ids(same) : 0,
                          same ? grq_tokenmap_n_classes(same) : 0, same ? grq_tokenmap_sha256(same) : NULL, &map, &err);
    if (same) fuzz_require(st == GRQ_OK, err.message);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!map, "a refused file is handed out");
        return;
    }
    fuzz_accepted = 1;
    fuzz_require(n_bytes == grq_tokenmap_n_ids(map) * sizeof(int32_t), "ids and file differ in number");
    use(map);
    grq_tokenmap_close(map);
}

static uint32_t build(const uint8_t *data, size_t size, uint64_t n_ids)
{
    grq_tokenmap *map;
    grq_error err;
    const grq_status st = grq_tokenmap_build(fuzz_file(data, size), n_ids, &map, &err);
    if (n_ids) fuzz_require(st == GRQ_OK, "reserved tokens make a file unreadable");
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!map, "a refused file is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    const uint32_t n = grq_tokenmap_n_ids(map);
    use(map);
    open_map(grq_tokenmap_ids(map), n * sizeof(int32_t), map);
    grq_tokenmap_close(map);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_map(data, size, NULL);
    const uint32_t n = build(data, size, 0);
    if (n) build(data, size, (uint64_t)n + 3);
    return 0;
}
