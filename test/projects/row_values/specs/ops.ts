/** Ops around a softmax whose rows have values that later ops need: a log-sum-exp, a maximum, a sum. */
import { exp, log, max, op, row, sum, tensor } from 'heddle'

const types = { T: ['f16', 'bf16', 'f32'] } as const
const four = tensor('T', 'n g r z')
export const tame = op('tame', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { o: four },
  body:
    ({ w }, { z }) =>
    (a, b, i) => ({ o: row(z, (j) => (j <= i ? w(a, b, i, j) * 0.25 : -1e30)) }),
})
export const scaled = op('scaled', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { o: four },
  body:
    ({ w }, { z }) =>
    (a, b, i) => ({ o: row(z, (j) => w(a, b, i, j) * 0.25) }),
})
export const weigh = op('weigh', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { o: four },
  body:
    ({ w }, { z }) =>
    (a, b, i) => {
      const u = max(z, (j) => w(a, b, i, j))
      const e = row(z, (j) => exp(w(a, b, i, j) - u))
      const s = sum(z, (j) => e(j))
      return { o: row(z, (j) => e(j) / s) }
    },
})
export const spread = op('spread', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { o: four, l: tensor('f32', 'n g r') },
  body:
    ({ w }, { z }) =>
    (a, b, i) => {
      const u = max(z, (j) => w(a, b, i, j))
      const e = row(z, (j) => exp(w(a, b, i, j) - u))
      const s = sum(z, (j) => e(j))
      return { o: row(z, (j) => e(j) / s), l: log(s) + u }
    },
})
export const level = op('level', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { l: tensor('f32', 'n g r') },
  body:
    ({ w }, { z }) =>
    (a, b, i) => {
      const u = max(z, (j) => w(a, b, i, j))
      return { l: u + log(sum(z, (j) => exp(w(a, b, i, j) - u))) }
    },
})
export const peak = op('peak', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { u: tensor('f32', 'n g r') },
  body:
    ({ w }, { z }) =>
    (a, b, i) => ({ u: max(z, (j) => w(a, b, i, j)) }),
})
export const lift = op('lift', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four, u: tensor('f32', 'n g r') },
  outputs: { e: tensor('f32', 'n g r z') },
  body:
    ({ w, u }, { z }) =>
    (a, b, i) => ({ e: row(z, (j) => exp(w(a, b, i, j) - u(a, b, i))) }),
})
export const whole = op('whole', {
  dims: ['n', 'g', 'r', 'z'],
  types: {},
  inputs: { e: tensor('f32', 'n g r z') },
  outputs: { s: tensor('f32', 'n g r') },
  body:
    ({ e }, { z }) =>
    (a, b, i) => ({ s: sum(z, (j) => e(a, b, i, j)) }),
})
export const share = op('share', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { e: tensor('f32', 'n g r z'), s: tensor('f32', 'n g r') },
  outputs: { o: four },
  body:
    ({ e, s }, { z }) =>
    (a, b, i) => ({ o: row(z, (j) => e(a, b, i, j) / s(a, b, i)) }),
})
export const joined = op('joined', {
  dims: ['n', 'g', 'r'],
  types: {},
  inputs: { u: tensor('f32', 'n g r'), s: tensor('f32', 'n g r') },
  outputs: { l: tensor('f32', 'n g r') },
  body:
    ({ u, s }) =>
    (a, b, i) => ({ l: log(s(a, b, i)) + u(a, b, i) }),
})
/** A window before each row's place, of which the first rows have no key. */
export const window = op('window', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { o: four },
  body:
    ({ w }, { z }) =>
    (a, b, i) => ({ o: row(z, (j) => (j < i && j + 3 > i ? w(a, b, i, j) : -1e30)) }),
})
/** A smallest score, which a softmax does not have. */
export const least = op('least', {
  dims: ['n', 'g', 'r', 'z'],
  types,
  inputs: { w: four },
  outputs: { l: tensor('f32', 'n g r') },
  body:
    ({ w }, { z }) =>
    (a, b, i) => ({ l: -max(z, (j) => -w(a, b, i, j)) }),
})
