// Upper anchor: eight pairs in one vector register, everything of a pair on the stack, pairs over OpenMP threads.
// The reduced algebra of whorl.lanes: rows 0 and 1, 2x2 solves, rank-one scores, three rotated samples, losses carried over.
// Compiled by c_lanes.py with -DL=depth -DLEAK=... -DSCALE=...
#include <math.h>
typedef double v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long m8 __attribute__((vector_size(64)));
#define LAYERS for (int l = 0; l < L; l++)
#define I for (int i = 0; i < 3; i++)
#define inl static inline __attribute__((always_inline))
typedef struct { v8 p[L][3][3]; } Net;
typedef struct { v8 flow[L + 1][3], w[L][3], f[L][2], b[L][2], r[L][2], g[2]; } Local;
typedef v8 Grown[L][2][3];

inl v8 pick(m8 m, v8 a, v8 b) { return (v8)((m & (m8)a) | (~m & (m8)b)); }
inl v8 vmax(v8 a, v8 b) { return pick(a > b, a, b); }
inl v8 vmin(v8 a, v8 b) { return pick(a < b, a, b); }

inl void exp_parts(v8 a, v8 *even, v8 *odd) {  // Taylor to degree 15, for exponents of at most 1
    static const double e[] = {1., 1. / 2, 1. / 24, 1. / 720, 1. / 40320, 1. / 3628800, 1. / 479001600, 1. / 87178291200.};
    static const double o[] = {1., 1. / 6, 1. / 120, 1. / 5040, 1. / 362880, 1. / 39916800, 1. / 6227020800., 1. / 1307674368000.};
    v8 z = a * a, x = z * e[7] + e[6], y = z * o[7] + o[6];
    for (int k = 5; k >= 0; k--) x = x * z + e[k], y = y * z + o[k];
    *even = x, *odd = a * y;
}

inl v8 loss(const Net *n, v8 in[3][3], v8 out[2][3]) {
    v8 m[2][3], t[2][3];
    I m[0][i] = n->p[0][0][i], m[1][i] = n->p[0][1][i];
    for (int l = 1; l < L; l++) {
        for (int a = 0; a < 2; a++) {
            v8 c = n->p[l][a][2], d0 = n->p[l][a][0] - c, d1 = n->p[l][a][1] - c;
            I t[a][i] = c + d0 * m[0][i] + d1 * m[1][i];
        }
        I m[0][i] = t[0][i], m[1][i] = t[1][i];
    }
    v8 total = {0};
    for (int j = 0; j < 3; j++) {
        v8 e0 = out[0][j], e1 = out[1][j];
        for (int i = j; i < 3; i++) e0 -= m[0][i] * in[j][i], e1 -= m[1][i] * in[j][i];
        total += e0 * (e0 + e1) + e1 * e1;
    }
    return total;
}

inl void measure(const Net *n, v8 x[3], v8 y[2], Local *o) {
    v8 down[L][2][2];
    I o->flow[0][i] = x[i];
    LAYERS I o->flow[l + 1][i] = n->p[l][i][0] * o->flow[l][0] + n->p[l][i][1] * o->flow[l][1] + n->p[l][i][2] * o->flow[l][2];
    v8 e0 = y[0] - o->flow[L][0], e1 = y[1] - o->flow[L][1], zero = {0};
    v8 k00 = zero + 2 * LEAK / 3, k01 = zero - LEAK / 3, k11 = k00;
    for (int l = L - 1; l >= 0; l--) {
        v8 c01 = zero, c02 = zero, c12 = zero;
        I {
            v8 w = o->flow[l][i] * o->flow[l][i], q0 = w * n->p[l][0][i], q1 = w * n->p[l][1][i];
            c01 += q0 * n->p[l][1][i], c02 += q0 * n->p[l][2][i], c12 += q1 * n->p[l][2][i];
        }
        v8 w00 = c01 + c02, w01 = -c01, w11 = c01 + c12;
        o->w[l][0] = w00, o->w[l][1] = w01, o->w[l][2] = w11;
        if (l == L - 1) {
            down[l][0][0] = down[l][1][1] = zero + 1, down[l][0][1] = down[l][1][0] = zero;
            k00 += w00, k01 += w01, k11 += w11;
        } else {
            const v8 (*p)[3] = n->p[l + 1];
            for (int a = 0; a < 2; a++) for (int b = 0; b < 2; b++)
                down[l][a][b] = down[l + 1][a][0] * (p[0][b] - p[0][2]) + down[l + 1][a][1] * (p[1][b] - p[1][2]);
            v8 a = down[l][0][0], b = down[l][0][1], c = down[l][1][0], d = down[l][1][1];
            v8 t0 = a * w00 + b * w01, t1 = a * w01 + b * w11, s0 = c * w00 + d * w01, s1 = c * w01 + d * w11;
            k00 += t0 * a + t1 * b, k01 += t0 * c + t1 * d, k11 += s0 * c + s1 * d;
        }
    }
    v8 inv = 1 / (k00 * k11 - k01 * k01), f0 = 2 * e0 + e1, f1 = e0 + 2 * e1, c0 = -f1 / sqrt(3.), c1 = f0 / sqrt(3.);
    v8 b0 = inv * (k11 * e0 - k01 * e1), b1 = inv * (k00 * e1 - k01 * e0);
    v8 r0 = inv * (k11 * c0 - k01 * c1), r1 = inv * (k00 * c1 - k01 * c0);
    o->g[0] = c0 - LEAK / 3 * (2 * r0 - r1), o->g[1] = c1 - LEAK / 3 * (2 * r1 - r0);
    LAYERS for (int j = 0; j < 2; j++) {
        o->f[l][j] = down[l][0][j] * f0 + down[l][1][j] * f1;
        o->b[l][j] = down[l][0][j] * b0 + down[l][1][j] * b1;
        o->r[l][j] = down[l][0][j] * r0 + down[l][1][j] * r1;
    }
}

inl m8 gate(const Net *n, const Local *o) {
    v8 first[3] = {0}, curve = {0};
    LAYERS {
        v8 q0 = o->r[l][0], q1 = o->r[l][1], f0 = o->f[l][0], f1 = o->f[l][1];
        I {
            v8 p0 = n->p[l][0][i], p1 = n->p[l][1][i], x = o->flow[l][i], mq = p0 * q0 + p1 * q1, mf = p0 * f0 + p1 * f1;
            v8 d0 = q0 - mq, d1 = q1 - mq, g0 = p0 * d0, g1 = p1 * d1;
            curve += x * (x * x * (g0 * (f0 * d0 - mf * q0) + g1 * (f1 * d1 - mf * q1)) + 2 * first[i] * (f0 * g0 + f1 * g1));
        }
        v8 n0 = o->w[l][0] * q0 + o->w[l][1] * q1, n1 = o->w[l][1] * q0 + o->w[l][2] * q1;
        for (int j = 0; j < 2; j++) {
            n0 += (n->p[l][0][j] - n->p[l][0][2]) * first[j];
            n1 += (n->p[l][1][j] - n->p[l][1][2]) * first[j];
        }
        first[0] = n0, first[1] = n1, first[2] = -n0 - n1;
    }
    return curve > 2 * (o->g[0] * (o->g[0] + o->g[1]) + o->g[1] * o->g[1]);
}

inl v8 span(const Local *o, double a) {
    v8 wide = {0}, zero = {0};
    wide += 1;
    LAYERS {
        v8 v0 = o->b[l][0] + a * o->r[l][0], v1 = o->b[l][1] + a * o->r[l][1];
        v8 top = vmax(vmax(o->flow[l][0], o->flow[l][1]), o->flow[l][2]);
        wide = vmax(wide, top * (vmax(vmax(v0, v1), zero) - vmin(vmin(v0, v1), zero)));
    }
    return wide;
}

inl void normal(Net *to, const Net *from, Grown w) {
    LAYERS I {
        v8 inv = 1 / (w[l][0][i] + w[l][1][i] + from->p[l][2][i]);
        to->p[l][0][i] = w[l][0][i] * inv, to->p[l][1][i] = w[l][1][i] * inv, to->p[l][2][i] = from->p[l][2][i] * inv;
    }
}

inl void grow(const Net *n, const Local *o, v8 step, Grown w) {
    v8 even, odd;
    LAYERS for (int a = 0; a < 2; a++) I {
        exp_parts(o->flow[l][i] * o->b[l][a] * step, &even, &odd);
        w[l][a][i] = n->p[l][a][i] * (even + odd);
    }
}

inl void turn_both_ways(const Local *o, v8 push, Grown still, Grown there, Grown back) {
    v8 even, odd;
    LAYERS for (int a = 0; a < 2; a++) I {
        exp_parts(o->flow[l][i] * o->r[l][a] * push, &even, &odd);
        there[l][a][i] = still[l][a][i] * (even + odd), back[l][a][i] = still[l][a][i] * (even - odd);
    }
}

#define LOAD(p) (*(const v8 *)(p))
#define STORE(p) (*(v8 *)(p))

// layers (L,3,3,B), inputs and targets (samples,3,B), schedule and turns (T,B), rotated (3,3,B) and (2,3,B); ledger (T,4,B), ends (L,3,3,B)
void run(long B, long T, const double *layers, const double *inputs, const double *targets, const int *schedule, const int *turns,
         const double *rotated_in, const double *rotated_out, double *ledger, double *turning_end, double *native_end) {
#pragma omp parallel for schedule(dynamic, 4)
    for (long at = 0; at < B; at += 8) {
        Net turning, native, taken, trial;
        Local o;
        Grown still, there, back;
        v8 in[3][3], out[2][3], zero = {0};
        LAYERS I for (int j = 0; j < 3; j++) turning.p[l][i][j] = LOAD(layers + ((l * 3 + i) * 3 + j) * B + at);
        native = turning;
        for (int j = 0; j < 3; j++) I in[j][i] = LOAD(rotated_in + (j * 3 + i) * B + at);
        for (int a = 0; a < 2; a++) I out[a][i] = LOAD(rotated_out + (a * 3 + i) * B + at);
        v8 before = loss(&turning, in, out), before_native = before;
        for (long t = 0; t < T; t++) {
            v8 x[3], y[2], turn;
            for (int lane = 0; lane < 8; lane++) {
                long k = schedule[t * B + at + lane];
                turn[lane] = turns[t * B + at + lane];
                I x[i][lane] = inputs[(k * 3 + i) * B + at + lane];
                for (int a = 0; a < 2; a++) y[a][lane] = targets[(k * 3 + a) * B + at + lane];
            }
            measure(&turning, x, y, &o);
            v8 own = SCALE / span(&o, 0), step = SCALE / vmax(span(&o, 1), span(&o, -1));
            grow(&turning, &o, step, still);
            turn_both_ways(&o, pick(gate(&turning, &o), turn * step, zero), still, there, back);
            normal(&taken, &turning, there);
            v8 after = loss(&taken, in, out), d_taken = after - before;
            normal(&trial, &turning, back);
            v8 mean = (d_taken + loss(&trial, in, out) - before) / 2;
            normal(&trial, &turning, still);
            v8 d_zero = loss(&trial, in, out) - before;
            grow(&turning, &o, own, still);
            normal(&trial, &turning, still);
            v8 d_own = loss(&trial, in, out) - before;
            measure(&native, x, y, &o);
            grow(&native, &o, SCALE / span(&o, 0), still);
            normal(&native, &native, still);
            v8 after_native = loss(&native, in, out);
            double *row = ledger + t * 4 * B + at;
            STORE(row) = mean - d_zero, STORE(row + B) = d_taken - mean;
            STORE(row + 2 * B) = d_zero - d_own, STORE(row + 3 * B) = d_own - (after_native - before_native);
            turning = taken, before = after, before_native = after_native;
        }
        LAYERS I for (int j = 0; j < 3; j++) {
            STORE(turning_end + ((l * 3 + i) * 3 + j) * B + at) = turning.p[l][i][j];
            STORE(native_end + ((l * 3 + i) * 3 + j) * B + at) = native.p[l][i][j];
        }
    }
}
