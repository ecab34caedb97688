/** Uses of storage types other than float32, float16, bfloat16, int8 and int32. */
import { abs, graph, max, op, plan, row, sum, tensor, toInt } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** Every type read and stored again, as its own type and as the type that bodies see; and numbers stored as every type. */
export const storage = op('storage', {
  dims: ['m', 'n'],
  inputs: {
    e4: tensor('f8e4m3', 'm n'),
    e5: tensor('f8e5m2', 'm n'),
    short: tensor('i16', 'm n'),
    count: tensor('u32', 'm n'),
    long: tensor('i64', 'm n'),
    x: tensor('f32', 'm n'),
    k: tensor('i32', 'm n'),
  },
  outputs: {
    e4Same: tensor('f8e4m3', 'm n'),
    e5Same: tensor('f8e5m2', 'm n'),
    shortSame: tensor('i16', 'm n'),
    countSame: tensor('u32', 'm n'),
    longSame: tensor('i64', 'm n'),
    e4Value: tensor('f32', 'm n'),
    e5Value: tensor('f32', 'm n'),
    shortValue: tensor('i32', 'm n'),
    e4Made: tensor('f8e4m3', 'm n'),
    e5Made: tensor('f8e5m2', 'm n'),
    shortMade: tensor('i16', 'm n'),
    countMade: tensor('u32', 'm n'),
    longMade: tensor('i64', 'm n'),
  },
  body:
    ({ e4, e5, short, count, long, x, k }, { n }) =>
    (m) => ({
      e4Same: row(n, (c) => e4(m, c)),
      e5Same: row(n, (c) => e5(m, c)),
      shortSame: row(n, (c) => short(m, c)),
      countSame: row(n, (c) => count(m, c)),
      longSame: row(n, (c) => long(m, c)),
      e4Value: row(n, (c) => e4(m, c)),
      e5Value: row(n, (c) => e5(m, c)),
      shortValue: row(n, (c) => short(m, c)),
      e4Made: row(n, (c) => x(m, c)),
      e5Made: row(n, (c) => x(m, c)),
      shortMade: row(n, (c) => k(m, c)),
      countMade: row(n, (c) => k(m, c)),
      longMade: row(n, (c) => k(m, c)),
    }),
})

/** Rows in 8-bit floats, with a scale each: the largest of a row becomes the largest number there is. */
export const quantiseRows = op('quantise_rows', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { q: tensor('f8e4m3', 'm n'), scale: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const scale = max(n, (c) => abs(x(m, c))) / 448
      return { q: row(n, (c) => (scale > 0 ? x(m, c) / scale : 0)), scale }
    },
})

/** Their numbers again. */
export const dequantiseRows = op('dequantise_rows', {
  dims: ['m', 'n'],
  types,
  inputs: { q: tensor('f8e4m3', 'm n'), scale: tensor('T', 'm') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ q, scale }) =>
    (m, c) => ({ y: q(m, c) * scale(m) }),
})

/** Columns times a scale each. */
export const scaleColumns = op('scale_columns', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('f32', 'm n'), scale: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, scale }) =>
    (m, c) => ({ y: x(m, c) * scale(c) }),
})

/** Rows of a table, by indices as PyTorch has them. */
export const gatherRows = op('gather_rows', {
  dims: ['m', 'v', 'n'],
  types,
  inputs: { table: tensor('T', 'v n'), ids: tensor('i64', 'm') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ table, ids }) =>
    (m, c) => ({ y: table(ids(m), c) }),
})

/** Samples of sound as numbers of -1 to 1, and how many of a row are as loud as can be. */
export const fromPcm = op('from_pcm', {
  dims: ['m', 'n'],
  inputs: { pcm: tensor('i16', 'm n'), before: tensor('u32', 'm') },
  outputs: { y: tensor('f32', 'm n'), clipped: tensor('u32', 'm') },
  body:
    ({ pcm, before }, { n }) =>
    (m) => ({
      y: row(n, (c) => pcm(m, c) / 32_768),
      clipped: before(m) + toInt(sum(n, (c) => (pcm(m, c) === 32_767 || pcm(m, c) === -32_768 ? 1 : 0))),
    }),
})

// #region masks
/** Mask of the elements that are at least the mean of the kept ones, and true per row if there is any. */
export const aboveMean = op('above_mean', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), keep: tensor('bool', 'm n') },
  outputs: { above: tensor('bool', 'm n'), any: tensor('bool', 'm') },
  body:
    ({ x, keep }, { n }) =>
    (m) => {
      const count = sum(n, (c) => (keep(m, c) ? 1 : 0))
      const total = sum(n, (c) => (keep(m, c) ? x(m, c) : 0))
      const above = row(n, (c) => keep(m, c) && x(m, c) * count >= total)
      return { above: row(n, (c) => above(c)), any: sum(n, (c) => (above(c) ? 1 : 0)) > 0 }
    },
})
// #endregion

/** The words that were seen, with one more of each row. */
export const markSeen = op('mark_seen', {
  dims: ['b', 'v'],
  inputs: { seen: tensor('bool', 'b v'), token: tensor('i32', 'b') },
  facts: { token: { index: 'v' } },
  outputs: { next: tensor('bool', 'b v') },
  updates: { next: 'seen' },
  body:
    ({ seen, token }) =>
    (b, c) => ({ next: c === token(b) ? true : seen(b, c) }),
})

/** Elements in which two masks differ. */
export const differing = op('differing', {
  dims: ['p', 'q'],
  inputs: { a: tensor('bool', 'p'), b: tensor('bool', 'q') },
  outputs: { y: tensor('bool', 'p q'), code: tensor('u8', 'p q') },
  body:
    ({ a, b }) =>
    (p, q) => ({ y: a(p) !== b(q), code: (a(p) ? 2 : 0) + (b(q) ? 1 : 0) }),
})

/** A linear layer whose weights are 8-bit floats with one scale per column: scaled on load, and after the sums. */
export const linear8 = graph('linear8', {
  inputs: { x: tensor('T', 'm k') },
  weights: { w: tensor('f8e4m3', 'n k'), scale: tensor('T', 'n') },
  typical: { m: 64, k: 128, n: 96 },
  build: (g, { x }, { w, scale }) => {
    const loaded = g.apply(dequantiseRows, { q: w, scale }).y
    const before = g.matmul('m k, n k -> m n', x, loaded)
    const sums = g.matmul('m k, n k -> m n', x, w, { result: 'f32' })
    const behind = g.apply(scaleColumns, { x: sums, scale }).y
    return { nodes: { loaded, before, sums, behind }, outputs: { before, behind } }
  },
})

export const inKernels = plan('in-kernels', linear8, {
  groups: { scaled_while_loaded: ['loaded', 'before'], scaled_behind: ['sums', 'behind'] },
})

export const graphs = { [linear8.name]: linear8 }
export const plans = [inKernels]
