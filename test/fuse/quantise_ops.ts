/** Ops that look as if they only moved elements, but do not: their results depend on the magnitude of elements, or include more than these. */
import { op, tensor } from 'heddle'

/** Small elements are left out: which ones those are, int8 does not say. */
export const shrink = op('shrink', {
  dims: ['m', 'k'],
  types: { T: ['f32', 'f16', 'bf16', 'i8'] },
  inputs: { x: tensor('T', 'm k') },
  outputs: { y: tensor('T', 'm k') },
  body:
    ({ x }) =>
    (m, c) => ({ y: x(m, c) > 0.5 ? x(m, c) : 0 }),
})

/** Rows of one tensor or of another, whose scales may differ. */
export const eitherRow = op('either_row', {
  dims: ['m', 'k'],
  types: { T: ['f32', 'f16', 'bf16', 'i8'] },
  inputs: { x: tensor('T', 'm k'), z: tensor('T', 'm k'), flags: tensor('i32', 'm') },
  outputs: { y: tensor('T', 'm k') },
  body:
    ({ x, z, flags }) =>
    (m, c) => ({ y: flags(m) > 0 ? x(m, c) : z(m, c) }),
})

/** Elements, or a number that has no scale. */
export const orOne = op('or_one', {
  dims: ['m', 'k'],
  types: { T: ['f32', 'f16', 'bf16', 'i8'] },
  inputs: { x: tensor('T', 'm k'), flags: tensor('i32', 'm') },
  outputs: { y: tensor('T', 'm k') },
  body:
    ({ x, flags }) =>
    (m, c) => ({ y: flags(m) > 0 ? x(m, c) : 1 }),
})

/** Floats that are stored as such: there is nothing that could move as int8. */
export const wholeFloats = op('whole_floats', {
  dims: ['m', 'k'],
  inputs: { z: tensor('f32', 'm k') },
  outputs: { y: tensor('f32', 'm k') },
  body:
    ({ z }) =>
    (m, c) => ({ y: z(m, c) }),
})

/** Elements, or floats of another tensor. */
export const orFloat = op('or_float', {
  dims: ['m', 'k'],
  types: { T: ['f32', 'f16', 'bf16', 'i8'] },
  inputs: { x: tensor('T', 'm k'), z: tensor('f32', 'm k'), flags: tensor('i32', 'm') },
  outputs: { y: tensor('T', 'm k') },
  body:
    ({ x, z, flags }) =>
    (m, c) => ({ y: flags(m) > 0 ? x(m, c) : z(m, c) }),
})
