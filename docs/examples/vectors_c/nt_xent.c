/* NT-Xent with its gradient in C99, run on the vectors of `nceref vectors export --loss nt_xent --format c-header`.
 *
 *     cc -std=c99 -O2 -I vectors -o nt_xent nt_xent.c -lm
 *     ./nt_xent > outputs.jsonl
 *     nceref vectors compare vectors outputs.jsonl
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nt_xent.h"

static double dot(const double *a, const double *b, int d) {
    double sum = 0;
    for (int c = 0; c < d; c++) sum += a[c] * b[c];
    return sum;
}

/* The loss of 2n rows of d numbers, where row i and row i + n are a pair; `slope` gets its derivatives by the
 * similarity of each two rows over the temperature. `u` has the rows as they are compared. */
static double loss_of(const double *u, int n, int d, double temperature, double *slope) {
    int rows = 2 * n;
    double loss = 0;
    for (int i = 0; i < rows; i++) {
        double *s = slope + i * rows, top = -INFINITY, sum = 0;
        int partner = (i + n) % rows;
        for (int j = 0; j < rows; j++) {
            s[j] = dot(u + i * d, u + j * d, d) / temperature;
            if (j != i) top = fmax(top, s[j]);
        }
        for (int j = 0; j < rows; j++) sum += j == i ? 0 : exp(s[j] - top);
        loss += (top - s[partner] + log(sum)) / rows;
        for (int j = 0; j < rows; j++) s[j] = j == i ? 0 : (exp(s[j] - top) / sum - (j == partner)) / rows;
    }
    return loss;
}

/* Value, gradient by the 2n rows `z`, and by the temperature. */
static double nt_xent(const double *z, int n, int d, double temperature, int unit_rows, double *grad,
                      double *by_temperature) {
    int rows = 2 * n;
    double *u = malloc(sizeof(double) * rows * d), *slope = malloc(sizeof(double) * rows * rows);
    double *g = malloc(sizeof(double) * d);
    for (int i = 0; i < rows; i++) {
        double length = unit_rows ? sqrt(dot(z + i * d, z + i * d, d)) : 1;
        for (int c = 0; c < d; c++) u[i * d + c] = z[i * d + c] / length;
    }
    double value = loss_of(u, n, d, temperature, slope);
    *by_temperature = 0;
    for (int i = 0; i < rows; i++) {
        const double *own = u + i * d;
        double length = unit_rows ? sqrt(dot(z + i * d, z + i * d, d)) : 1;
        memset(g, 0, sizeof(double) * d);
        for (int j = 0; j < rows; j++) {
            double both = (slope[i * rows + j] + slope[j * rows + i]) / temperature;
            for (int c = 0; c < d; c++) g[c] += both * u[j * d + c];
            *by_temperature -= slope[i * rows + j] * dot(own, u + j * d, d) / temperature / temperature;
        }
        /* No part of the gradient lies along a row that is scaled to length 1. */
        double along = unit_rows ? dot(g, own, d) : 0;
        for (int c = 0; c < d; c++) grad[i * d + c] = (g[c] - along * own[c]) / length;
    }
    free(u), free(slope), free(g);
    return value;
}

/* The bits of a number: 16 digits, whatever it is. */
static void print_number(double x) {
    unsigned long long bits;
    memcpy(&bits, &x, sizeof bits);
    printf("\"%016llx\"", bits);
}

static void print_numbers(const char *name, const double *x, long size) {
    printf("\"%s\": [", name);
    for (long i = 0; i < size; i++) {
        if (i) printf(", ");
        print_number(x[i]);
    }
    printf("]");
}

static const nceref_array *input(const nceref_case *one, const char *name) {
    for (int i = 0; i < one->input_count; i++)
        if (!strcmp(one->inputs[i].name, name)) return &one->inputs[i];
    return NULL;
}

static const char *setting(const nceref_case *one, const char *name) {
    for (int i = 0; i < one->setting_count; i++)
        if (!strcmp(one->settings[i].name, name)) return one->settings[i].value;
    return "";
}

static void answer(const nceref_case *one) {
    const nceref_array *z1 = input(one, "z1"), *z2 = input(one, "z2"), *temperature = input(one, "temperature");
    int unit_rows = !strcmp(setting(one, "normalize"), "l2");
    if (!z1 || !z2 || !temperature || (!unit_rows && strcmp(setting(one, "normalize"), "none"))) {
        printf("{\"id\": \"%s\", \"unsupported\": \"other inputs or another normalization\"}\n", one->id);
        return;
    }
    double *z = malloc(sizeof(double) * 2 * z1->size), *grad = malloc(sizeof(double) * 2 * z1->size), by_temperature;
    memcpy(z, z1->numbers, sizeof(double) * z1->size);
    memcpy(z + z1->size, z2->numbers, sizeof(double) * z2->size);
    double value = nt_xent(z, z1->shape[0], z1->shape[1], temperature->numbers[0], unit_rows, grad, &by_temperature);
    printf("{\"id\": \"%s\", \"value\": ", one->id);
    print_number(value);
    printf(", \"grad\": {");
    print_numbers("z1", grad, z1->size);
    printf(", ");
    print_numbers("z2", grad + z1->size, z2->size);
    printf(", ");
    print_numbers("temperature", &by_temperature, 1);
    printf("}}\n");
    free(z), free(grad);
}

int main(void) {
    printf("{\"manifest\": \"%s\", \"implementation\": \"nt_xent.c\"}\n", NCEREF_NT_XENT_MANIFEST);
    for (int i = 0; i < nceref_nt_xent_count; i++) answer(&nceref_nt_xent_cases[i]);
    return 0;
}
