/* CMMLU: folders of CSV files, one for each of 67 subjects. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "gaterq/file.h"
#include "suite_internal.h"
#include "text_file.h"

/* Names as the suite's own prompts have them (name_en2zh of its repository). */
static const char *const subjects[][2] = {
    { "agronomy", "农学" },
    { "anatomy", "解剖学" },
    { "ancient_chinese", "古汉语" },
    { "arts", "艺术学" },
    { "astronomy", "天文学" },
    { "business_ethics", "商业伦理" },
    { "chinese_civil_service_exam", "中国公务员考试" },
    { "chinese_driving_rule", "中国驾驶规则" },
    { "chinese_food_culture", "中国饮食文化" },
    { "chinese_foreign_policy", "中国外交政策" },
    { "chinese_history", "中国历史" },
    { "chinese_literature", "中国文学" },
    { "chinese_teacher_qualification", "中国教师资格" },
    { "clinical_knowledge", "临床知识" },
    { "college_actuarial_science", "大学精算学" },
    { "college_education", "大学教育学" },
    { "college_engineering_hydrology", "大学工程水文学" },
    { "college_law", "大学法律" },
    { "college_mathematics", "大学数学" },
    { "college_medical_statistics", "大学医学统计" },
    { "college_medicine", "大学医学" },
    { "computer_science", "计算机科学" },
    { "computer_security", "计算机安全" },
    { "conceptual_physics", "概念物理学" },
    { "construction_project_management", "建设工程管理" },
    { "economics", "经济学" },
    { "education", "教育学" },
    { "electrical_engineering", "电气工程" },
    { "elementary_chinese", "小学语文" },
    { "elementary_commonsense", "小学常识" },
    { "elementary_information_and_technology", "小学信息技术" },
    { "elementary_mathematics", "初等数学" },
    { "ethnology", "民族学" },
    { "food_science", "食品科学" },
    { "genetics", "遗传学" },
    { "global_facts", "全球事实" },
    { "high_school_biology", "高中生物" },
    { "high_school_chemistry", "高中化学" },
    { "high_school_geography", "高中地理" },
    { "high_school_mathematics", "高中数学" },
    { "high_school_physics", "高中物理学" },
    { "high_school_politics", "高中政治" },
    { "human_sexuality", "人类性行为" },
    { "international_law", "国际法学" },
    { "journalism", "新闻学" },
    { "jurisprudence", "法理学" },
    { "legal_and_moral_basis", "法律与道德基础" },
    { "logical", "逻辑学" },
    { "machine_learning", "机器学习" },
    { "management", "管理学" },
    { "marketing", "市场营销" },
    { "marxist_theory", "马克思主义理论" },
    { "modern_chinese", "现代汉语" },
    { "nutrition", "营养学" },
    { "philosophy", "哲学" },
    { "professional_accounting", "专业会计" },
    { "professional_law", "专业法学" },
    { "professional_medicine", "专业医学" },
    { "professional_psychology", "专业心理学" },
    { "public_relations", "公共关系" },
    { "security_study", "安全研究" },
    { "sociology", "社会学" },
    { "sports_science", "体育学" },
    { "traditional_chinese_medicine", "中医中药" },
    { "virology", "病毒学" },
    { "world_history", "世界历史" },
    { "world_religions", "世界宗教" },
};

const char *grq_cmmlu_subject_name(const char *subject)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (!strcmp(subjects[i][0], subject)) return subjects[i][1];
    return NULL;
}

static const char *const header[] = { "", "Question", "A", "B", "C", "D", "Answer" };

static bool add_choices(grq_suite_item *item, const grq_csv_record *record)
{
    const char **const choices = calloc(GRQ_N_CHOICES, sizeof *choices);
    item->choices = choices;
    bool made = choices != NULL;
    for (size_t k = 0; made && k < GRQ_N_CHOICES; k++) made = (choices[k] = strdup(record->fields[2 + k])) != NULL;
    return made;
}

static grq_status add_choice_item(const char *path, const char *subject, const grq_csv_record *record, size_t row,
                                  grq_suite *out, grq_error *err)
{
    char id[SUITE_ID_BYTES];
    if (record->n_fields != 7)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu has %zu fields, not 7", path, record->line, record->n_fields);
    const char *const answer = record->fields[6];
    if (strlen(answer) != 1 || *answer < 'A' || *answer > 'D')
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu: the answer is \"%.20s\", not A, B, C or D", path, record->line,
                        answer);
    for (size_t k = 1; k < 6; k++)
        if (suite_is_blank(record->fields[k], strlen(record->fields[k])))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: %s is blank", path, record->line, header[k]);
    snprintf(id, sizeof id, "%s/%zu", subject, row);
    grq_suite_item *const item = suite_add_item(out, id, record->fields[1], subject);
    return item && suite_add_answer(item, answer) && add_choices(item, record) ? GRQ_OK : suite_no_memory(path, err);
}

static grq_status read_subject(const char *path, const char *subject, grq_suite *out, grq_error *err)
{
    char *text = NULL;
    size_t n;
    grq_status st = grq_text_file_read(path, &text, &n, err);
    if (st != GRQ_OK) return st;
    grq_csv r = { .path = path, .at = text, .end = text + n, .separator = ',', .line = 1 };
    grq_csv_record record;
    bool more;
    st = grq_csv_next(&r, &record, &more, err);
    bool right = st == GRQ_OK && record.n_fields == 7;
    for (size_t i = 0; right && i < 7; i++) right = !strcmp(record.fields[i], header[i]);
    if (st == GRQ_OK && !right) st = grq_fail(err, GRQ_E_DATA, "%s: the header is not ,Question,A,B,C,D,Answer", path);
    for (size_t row = 0; st == GRQ_OK; row++) {
        st = grq_csv_next(&r, &record, &more, err);
        if (st != GRQ_OK || !more) break;
        st = add_choice_item(path, subject, &record, row, out, err);
    }
    free(text);
    return st;
}

static int is_subject_file(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 4 && !strcmp(entry->d_name + n - 4, ".csv");
}

grq_status suite_read_cmmlu(grq_suite *out, const char *folder, const char *part, grq_error *err)
{
    char *const tests = grq_path_join(folder, part);
    struct dirent **entries = NULL;
    if (!tests) return suite_no_memory(folder, err);
    const int n = scandir(tests, &entries, is_subject_file, alphasort);
    grq_status st = n > 0 ? GRQ_OK
                          : grq_fail(err, n < 0 ? GRQ_E_IO : GRQ_E_DATA, "%s: %s", tests,
                                     n < 0 ? strerror(errno) : "the folder holds no <subject>.csv");
    for (int i = 0; i < n; i++) {
        char *const path = grq_path_join(tests, entries[i]->d_name);
        entries[i]->d_name[strlen(entries[i]->d_name) - 4] = '\0';
        if (st == GRQ_OK) st = path ? read_subject(path, entries[i]->d_name, out, err) : suite_no_memory(folder, err);
        free(path);
        free(entries[i]);
    }
    free(entries);
    free(tests);
    return st;
}
