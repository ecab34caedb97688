/** The variance of rows three times: correct, with a mistake, and in a form that loses precision. */
import { op, row, sum, tensor } from 'heddle'

// #region right
export const variance = op('variance', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const mean = sum(n, (c) => v(c)) / n
      return { y: sum(n, (c) => (v(c) - mean) ** 2) / n }
    },
})
// #endregion

// #region slip
export const slip = op('slip', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const mean = sum(n, (c) => x(m, c)) / n
      return { y: sum(n, (c) => (x(m, c) - mean) ** 2) / (n - 1) }
    },
})
// #endregion

// #region digits
export const difference = op('difference', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const mean = sum(n, (c) => x(m, c)) / n
      return { y: sum(n, (c) => x(m, c) ** 2) / n - mean ** 2 }
    },
})
// #endregion

// #region neighbour
/** Reads the element after its own, also after the last. */
export const neighbour = op('neighbour', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body:
    ({ x }) =>
    (c) => ({ y: x(c + 1) - x(c) }),
})
// #endregion
