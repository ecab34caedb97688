/** A gate, as in the inner network of LLaMA, and a dropout whose draws depend only on seed and position. */
import { exp, int, op, tensor, uniform } from 'heddle'

// #region silu
/** Any body may call a function written in the same language: it is compiled into the kernel. */
const silu = (x: number): number => x / (1 + exp(-x))
// #endregion

// #region swiglu
export const swiglu = op('swiglu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { gate: tensor('T', 'm n'), up: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ gate, up }) =>
    (m, c) => ({ y: silu(gate(m, c)) * up(m, c) }),
})
// #endregion

// #region dropout
export const dropout = op('dropout', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n'), kept: tensor('u8', 'm n') },
  attrs: { share: 0.1, seed: int(1) },
  body:
    ({ x }, { n, share, seed }) =>
    (m, c) => {
      const kept = uniform(seed, 0, m * n + c) >= share
      return { y: kept ? x(m, c) / (1 - share) : 0, kept: kept ? 1 : 0 }
    },
})
// #endregion
