#include "memory/tokenizer_json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "gaterq/json.h"
#include "gaterq/tokenmap.h"

/* The byte-level alphabet writes each byte as one character: printable Latin-1 as itself, the 68 others as U+0100 and
 * up, in order. */
enum { N_ALPHABET = 0x100 + 68 };

struct grq_tokenizer_json {
    grq_json *document; /* owns the spellings */
    grq_token *tokens;  /* (n_room), by id; a spelling of NULL: none yet */
    uint32_t n_tokens;  /* the largest id and one */
    uint32_t n_room;    /* tokens the file lists; an added one may repeat one of the vocabulary */
    char *bytes;        /* of the tokens, behind each other */
};

/* byte_of[c] is the byte that character c stands for, -1 where it is none. */
static void make_alphabet(int16_t byte_of[N_ALPHABET])
{
    for (int c = 0; c < N_ALPHABET; c++) byte_of[c] = -1;
    int next = 0x100;
    for (int b = 0; b < 0x100; b++) {
        const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b != 0xAD);
        byte_of[printable ? b : next++] = (int16_t)b;
    }
}

/* Writes the bytes that `spelling` stands for; false where a character is outside the alphabet. */
static bool decode(const int16_t byte_of[N_ALPHABET], const char *spelling, char *to, size_t *n_bytes)
{
    const utf8proc_uint8_t *s = (const utf8proc_uint8_t *)spelling;
    *n_bytes = 0;
    while (*s) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t n = utf8proc_iterate(s, -1, &c);
        if (n <= 0 || c >= N_ALPHABET || byte_of[c] < 0) return false;
        to[(*n_bytes)++] = (char)byte_of[c];
        s += n;
    }
    return true;
}

/* ---- reading the parts ------------------------------------------------------------------------------------------ */

/* A JSON number; the decimal strings that grq_json_as_u64 also takes are no ids of a tokenizer. Ids have no holes, so
 * none can reach the number of tokens that are listed. */
static grq_status read_id(const grq_tokenizer_json *file, grq_json_node *node, uint32_t *id, grq_error *err)
{
    uint64_t value = 0;
    if (grq_json_kind_of(node) != GRQ_JSON_NUMBER)
        return grq_fail(err, GRQ_E_DATA, "%s: must be a number", grq_json_where(node));
    grq_status st = grq_json_as_u64(node, 0, GRQ_TOKENMAP_MAX_IDS - 1, &value, err);
    if (st == GRQ_OK && value >= file->n_room)
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: id %" PRIu64 ", but the file has %" PRIu32 " tokens only: some id below it has none",
                      grq_json_where(node), value, file->n_room);
    *id = (uint32_t)value;
    return st;
}

/* An added token may repeat one of the vocabulary, with the same text. */
static grq_status claim(grq_tokenizer_json *file, grq_json_node *node, uint32_t id, const char *spelling, bool added,
                        grq_error *err)
{
    grq_token *const token = &file->tokens[id];
    if (token->spelling && !(added && !token->added && strcmp(token->spelling, spelling) == 0))
        return grq_fail(err, GRQ_E_DATA, "%s: id %" PRIu32 " is \"%s\" already", grq_json_where(node), id,
                        token->spelling);
    token->spelling = spelling;
    token->added = added;
    if (id >= file->n_tokens) file->n_tokens = id + 1;
    return GRQ_OK;
}

static grq_status read_vocab(grq_tokenizer_json *file, grq_json_node *vocab, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; i < grq_json_count(vocab) && st == GRQ_OK; i++) {
        grq_json_node *const node = grq_json_at(vocab, i);
        uint32_t id;
        st = read_id(file, node, &id, err);
        if (st == GRQ_OK) st = claim(file, node, id, grq_json_key_at(vocab, i), false, err);
    }
    return st;
}

static grq_status read_added(grq_tokenizer_json *file, grq_json_node *list, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; i < grq_json_count(list) && st == GRQ_OK; i++) {
        grq_json_node *const token = grq_json_at(list, i);
        const char *content;
        uint32_t id;
        st = grq_json_string(token, "content", &content, err);
        if (st != GRQ_OK) return st;
        grq_json_node *const node = grq_json_find(token, "id");
        if (!node) return grq_fail(err, GRQ_E_DATA, "%s: the key \"id\" is missing", grq_json_where(token));
        st = read_id(file, node, &id, err);
        if (st == GRQ_OK) st = claim(file, node, id, content, true, err);
    }
    return st;
}

/* ---- checks over all of them ------------------------------------------------------------------------------------ */

static int compare_spellings(const void *a, const void *b)
{
    const grq_token *const *const x = a, *const *const y = b;
    return strcmp((*x)->spelling, (*y)->spelling);
}

/* Each id has a token, and no two have the same spelling (the vocabulary and the added tokens may disagree). */
static grq_status check_ids(const grq_tokenizer_json *file, const char *path, grq_error *err)
{
    for (uint32_t id = 0; id < file->n_tokens; id++)
        if (!file->tokens[id].spelling)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: model.vocab, added_tokens: no token has id %" PRIu32 "; the largest is %" PRIu32, path,
                            id, file->n_tokens - 1);
    const grq_token **sorted = malloc(file->n_tokens * sizeof(grq_token *));
    if (!sorted) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %" PRIu32 " tokens", path, file->n_tokens);
    grq_status st = GRQ_OK;
    for (uint32_t id = 0; id < file->n_tokens; id++) sorted[id] = &file->tokens[id];
    qsort(sorted, file->n_tokens, sizeof *sorted, compare_spellings);
    for (uint32_t i = 1; i < file->n_tokens && st == GRQ_OK; i++)
        if (compare_spellings(&sorted[i - 1], &sorted[i]) == 0)
            st = grq_fail(err, GRQ_E_DATA, "%s: model.vocab, added_tokens: ids %td and %td are both \"%s\"", path,
                          sorted[i - 1] - file->tokens, sorted[i] - file->tokens, sorted[i]->spelling);
    free(sorted);
    return st;
}

/* The decoder takes added tokens like all others: only one with a character outside the alphabet stands for itself. In
 * the vocabulary such a character means that this is no byte-level one. */
static grq_status decode_all(grq_tokenizer_json *file, const char *path, grq_error *err)
{
    int16_t byte_of[N_ALPHABET];
    make_alphabet(byte_of);
    size_t room = 1; /* a character is at least the byte it stands for */
    for (uint32_t id = 0; id < file->n_tokens; id++) room += strlen(file->tokens[id].spelling);
    char *to = file->bytes = malloc(room);
    if (!to) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu bytes of tokens", path, room);
    for (uint32_t id = 0; id < file->n_tokens; id++) {
        grq_token *const token = &file->tokens[id];
        token->bytes = to;
        if (!decode(byte_of, token->spelling, to, &token->n_bytes)) {
            if (!token->added)
                return grq_fail(err, GRQ_E_DATA,
                                "%s: model.vocab: \"%s\" (id %" PRIu32
                                ") has a character outside the byte-level alphabet",
                                path, token->spelling, id);
            token->bytes = token->spelling;
            token->n_bytes = strlen(token->spelling);
        }
        to += token->n_bytes;
    }
    return GRQ_OK;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static grq_status check_type(grq_json_node *object, const char *wanted, grq_error *err)
{
    const char *type;
    const grq_status st = grq_json_string(object, "type", &type, err);
    if (st != GRQ_OK || strcmp(type, wanted) == 0) return st;
    return grq_fail(err, GRQ_E_DATA, "%s: type must be \"%s\" (byte-level BPE is supported), is \"%s\"",
                    grq_json_where(object), wanted, type);
}

/* Finds the two lists of tokens and makes room for them. A file without "added_tokens" has none, and one without
 * "decoder" was cut down to its vocabulary; any decoder but ByteLevel would give other texts. */
static grq_status find_parts(grq_tokenizer_json *file, grq_json_node **vocab, grq_json_node **added, grq_error *err)
{
    grq_json_node *const root = grq_json_root(file->document), *model, *decoder;
    *added = NULL;
    grq_status st = grq_json_object(root, "model", &model, err);
    if (st == GRQ_OK) st = check_type(model, "BPE", err);
    if (st == GRQ_OK) st = grq_json_object(model, "vocab", vocab, err);
    if (st == GRQ_OK && grq_json_find(root, "added_tokens")) st = grq_json_array(root, "added_tokens", added, err);
    if (st == GRQ_OK && (decoder = grq_json_find(root, "decoder"))) st = check_type(decoder, "ByteLevel", err);
    if (st != GRQ_OK) return st;
    const size_t n_vocab = grq_json_count(*vocab), n = n_vocab + (*added ? grq_json_count(*added) : 0);
    if (n_vocab == 0) return grq_fail(err, GRQ_E_DATA, "%s: has no token", grq_json_where(*vocab));
    if (n > GRQ_TOKENMAP_MAX_IDS)
        return grq_fail(err, GRQ_E_DATA, "%s: %zu tokens with the added ones; at most %d are supported",
                        grq_json_where(*vocab), n, GRQ_TOKENMAP_MAX_IDS);
    file->n_room = (uint32_t)n;
    file->tokens = calloc(n, sizeof *file->tokens);
    return file->tokens ? GRQ_OK
                        : grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu tokens", grq_json_where(*vocab), n);
}

grq_status grq_tokenizer_json_open(const char *path, grq_tokenizer_json **out, grq_error *err)
{
    *out = NULL;
    grq_tokenizer_json *file = calloc(1, sizeof *file);
    if (!file) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    grq_json_node *vocab, *added;
    grq_status st = grq_json_open(path, &file->document, err);
    if (st == GRQ_OK) st = find_parts(file, &vocab, &added, err);
    if (st == GRQ_OK) st = read_vocab(file, vocab, err);
    if (st == GRQ_OK && added) st = read_added(file, added, err);
    if (st == GRQ_OK) st = check_ids(file, path, err);
    if (st == GRQ_OK) st = decode_all(file, path, err);
    if (st == GRQ_OK) *out = file;
    else grq_tokenizer_json_close(file);
    return st;
}

void grq_tokenizer_json_close(grq_tokenizer_json *file)
{
    if (!file) return;
    grq_json_close(file->document);
    free(file->tokens);
    free(file->bytes);
    free(file);
}

uint32_t grq_tokenizer_json_count(const grq_tokenizer_json *file)
{
    return file->n_tokens;
}

const grq_token *grq_tokenizer_json_at(const grq_tokenizer_json *file, uint32_t id)
{
    return &file->tokens[id];
}
