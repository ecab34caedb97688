/** Ops of an app that is bundled. */
import { op, tensor } from 'heddle'
import { factor } from './factor.js'

export const scaled = op('scaled', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: factor * x(m, c) }),
})
