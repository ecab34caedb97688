/** Weights of few bits, unpacked by separate kernels and in prologues of matmuls. */
import { abs, exp, graph, idiv, max, maximum, op, row, rsqrt, shiftRightUnsigned, sum, tensor, toFloat } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Eight weights of four bits a word, the lowest first, with a scale for 128 of a row. */
export const unpackWords = op('unpack_words', {
  dims: ['n', 'k', 'w', 'g'],
  types,
  inputs: { words: tensor('i32', 'n w'), scales: tensor('T', 'n g') },
  outputs: { y: tensor('T', 'n k') },
  facts: { k: '8*w', w: '16*g' },
  body:
    ({ words, scales }) =>
    (n, k) => ({
      y: toFloat((shiftRightUnsigned(words(n, idiv(k, 8)), (k % 8) * 4) & 15) - 8) * scales(n, idiv(k, 128)),
    }),
})

/** The same with a zero point for each group, packed like the weights. */
export const unpackZeros = op('unpack_zeros', {
  dims: ['n', 'k', 'w', 'g', 'z'],
  types,
  inputs: { words: tensor('i32', 'n w'), zeros: tensor('i32', 'g z'), scales: tensor('T', 'n g') },
  outputs: { y: tensor('T', 'n k') },
  facts: { k: '8*w', w: '8*g', n: '8*z' },
  body:
    ({ words, zeros, scales }) =>
    (n, k) => {
      const weight = shiftRightUnsigned(words(n, idiv(k, 8)), (k % 8) * 4) & 15
      const zero = shiftRightUnsigned(zeros(idiv(k, 64), idiv(n, 8)), (n % 8) * 4) & 15
      return { y: toFloat(weight - zero) * scales(n, idiv(k, 64)) }
    },
})

/** Two-bit weights, four per byte, of -1, 0 and 1, with one scale per row. */
export const unpackTernary = op('unpack_ternary', {
  dims: ['n', 'k', 'q'],
  types,
  inputs: { bytes: tensor('u8', 'n q'), scale: tensor('T', 'n') },
  outputs: { y: tensor('T', 'n k') },
  facts: { k: '4*q' },
  body:
    ({ bytes, scale }) =>
    (n, k) => ({ y: toFloat((shiftRightUnsigned(bytes(n, idiv(k, 4)), (k % 4) * 2) & 3) - 1) * scale(n) }),
})

/** Two weights a byte that name one of sixteen values, with a scale for 64 of a row. */
export const unpackCodes = op('unpack_codes', {
  dims: ['n', 'k', 'h', 'g', 'v'],
  types,
  inputs: { codes: tensor('u8', 'n h'), values: tensor('f32', 'v'), scales: tensor('T', 'n g') },
  outputs: { y: tensor('T', 'n k') },
  facts: { k: '2*h', h: '32*g', v: 16 },
  body:
    ({ codes, values, scales }) =>
    (n, k) => ({
      y: values(shiftRightUnsigned(codes(n, idiv(k, 2)), (k % 2) * 4) & 15) * scales(n, idiv(k, 64)),
    }),
})

/** 8-bit floats with a scale of a power of two for 32 of a row. */
export const scaleMicro = op('scale_micro', {
  dims: ['n', 'k', 'g'],
  inputs: { x: tensor('f8e4m3', 'n k'), exponent: tensor('u8', 'n g') },
  outputs: { y: tensor('bf16', 'n k') },
  facts: { k: '32*g', exponent: { from: 96, to: 144 } },
  body:
    ({ x, exponent }) =>
    (n, k) => ({ y: x(n, k) * exp((exponent(n, idiv(k, 32)) - 127) * Math.LN2) }),
})

/** 8-bit floats with a scale for each 1 x 128 of a matrix. */
export const scaleRows = op('scale_rows', {
  dims: ['m', 'k', 'p'],
  inputs: { x: tensor('f8e4m3', 'm k'), s: tensor('f32', 'm p') },
  outputs: { y: tensor('bf16', 'm k') },
  facts: { k: '128*p' },
  body:
    ({ x, s }) =>
    (m, k) => ({ y: x(m, k) * s(m, idiv(k, 128)) }),
})

/** The same with one for each 128 x 128. */
export const scaleBlocks = op('scale_blocks', {
  dims: ['n', 'k', 'q', 'p'],
  inputs: { w: tensor('f8e4m3', 'n k'), s: tensor('f32', 'q p') },
  outputs: { y: tensor('bf16', 'n k') },
  facts: { k: '128*p', n: '128*q' },
  body:
    ({ w, s }) =>
    (n, k) => ({ y: w(n, k) * s(idiv(n, 128), idiv(k, 128)) }),
})

/** A norm of rows whose elements are int8 with a scale for each 64. */
export const normOfGroups = op('norm_of_groups', {
  dims: ['m', 'n', 'g'],
  types,
  inputs: { x: tensor('i8', 'm n'), scales: tensor('T', 'm g'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  facts: { n: '64*g' },
  body:
    ({ x, scales, gamma }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c) * scales(m, idiv(c, 64)))
      const scale = rsqrt(sum(n, (c) => v(c) ** 2) / n + 1e-6)
      return { y: row(n, (c) => v(c) * scale * gamma(c)) }
    },
})

/** Matmul of a vector with 4-bit rows, eight per word. */
export const rowsOfWords = op('rows_of_words', {
  dims: ['n', 'k', 'w', 'g'],
  types,
  inputs: { x: tensor('T', 'k'), words: tensor('i32', 'n w'), scales: tensor('T', 'n g') },
  outputs: { y: tensor('f32', 'n') },
  facts: { k: '8*w', w: '16*g' },
  body:
    ({ x, words, scales }, { k }) =>
    (n) => ({
      y: sum(
        k,
        (c) => x(c) * toFloat((shiftRightUnsigned(words(n, idiv(c, 8)), (c % 8) * 4) & 15) - 8) * scales(n, idiv(c, 128)),
      ),
    }),
})

/** Rows in 8-bit floats, with a scale for each 128 of them. */
export const toFloat8 = op('to_float8', {
  dims: ['m', 'g', 'k'],
  types,
  inputs: { x: tensor('T', 'm g k') },
  outputs: { q: tensor('f8e4m3', 'm g k'), s: tensor('f32', 'm g') },
  facts: { k: 128 },
  body:
    ({ x }, { k }) =>
    (m, g) => {
      const v = row(k, (c) => x(m, g, c))
      const s =
        maximum(
          max(k, (c) => abs(v(c))),
          1e-10,
        ) / 448
      return { q: row(k, (c) => v(c) / s), s }
    },
})

/** A linear layer of weights of four bits in words. */
export const linearWords = graph('linear_words', {
  inputs: { x: tensor('T', 'm k') },
  weights: { words: tensor('i32', 'n w'), scales: tensor('T', 'n g') },
  dims: ['k'],
  typical: { m: 16, n: 4096, k: 4096, w: 512, g: 32 },
  build: (g, { x }, { words, scales }) => {
    const weight = g.apply(unpackWords, { words, scales }, {}, { k: 'k' }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})

/** The same with zero points. */
export const linearZeros = graph('linear_zeros', {
  inputs: { x: tensor('T', 'm k') },
  weights: { words: tensor('i32', 'n w'), zeros: tensor('i32', 'g z'), scales: tensor('T', 'n g') },
  dims: ['k'],
  typical: { m: 16, n: 4096, k: 4096, w: 512, g: 64, z: 512 },
  build: (g, { x }, { words, zeros, scales }) => {
    const weight = g.apply(unpackZeros, { words, zeros, scales }, {}, { k: 'k' }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})

/** A linear layer of ternary weights. */
export const linearTernary = graph('linear_ternary', {
  inputs: { x: tensor('T', 'm k') },
  weights: { bytes: tensor('u8', 'n q'), scale: tensor('T', 'n') },
  dims: ['k'],
  typical: { m: 16, n: 4096, k: 4096, q: 1024 },
  build: (g, { x }, { bytes, scale }) => {
    const weight = g.apply(unpackTernary, { bytes, scale }, {}, { k: 'k' }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})

/** A linear layer of codes. */
export const linearCodes = graph('linear_codes', {
  inputs: { x: tensor('T', 'm k') },
  weights: { codes: tensor('u8', 'n h'), values: tensor('f32', 'v'), scales: tensor('T', 'n g') },
  dims: ['k'],
  typical: { m: 16, n: 4096, k: 4096, h: 2048, g: 64, v: 16 },
  build: (g, { x }, { codes, values, scales }) => {
    const weight = g.apply(unpackCodes, { codes, values, scales }, {}, { k: 'k' }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})

/** A matmul of 8-bit floats with block scales. */
export const linearFloat8 = graph('linear_float8', {
  inputs: { x: tensor('f8e4m3', 'm k'), xs: tensor('f32', 'm p') },
  weights: { w: tensor('f8e4m3', 'n k'), ws: tensor('f32', 'q p') },
  typical: { m: 128, n: 4096, k: 4096, p: 32, q: 32 },
  build: (g, { x, xs }, { w, ws }) => {
    const a = g.apply(scaleRows, { x, s: xs }).y
    const b = g.apply(scaleBlocks, { w, s: ws }).y
    const y = g.matmul('m k, n k -> m n', a, b, { result: 'f32' })
    return { nodes: { a, b, y }, outputs: { y } }
  },
})

/** A matmul of micro-scaled weights. */
export const linearMicro = graph('linear_micro', {
  inputs: { x: tensor('bf16', 'm k') },
  weights: { w: tensor('f8e4m3', 'n k'), exponent: tensor('u8', 'n g') },
  typical: { m: 128, n: 4096, k: 4096, g: 128 },
  build: (g, { x }, { w, exponent }) => {
    const weight = g.apply(scaleMicro, { x: w, exponent }).y
    const y = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { weight, y }, outputs: { y } }
  },
})
