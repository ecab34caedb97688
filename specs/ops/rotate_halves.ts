/**
 * Rotary position embedding (Su et al. 2021) in the order of Hugging Face's checkpoints: elements `c` and `c + e` of a head are rotated together by
 * the angle of their place. Cosines and sines come from float32 tables with one row per place, for every scaling of the rotation. If a head has more
 * than `2e` elements, the last ones stay unchanged.
 */
import { op, tensor } from 'heddle'

/** Dims: m tokens, h heads, d elements of a head, p places of the tables, e pairs. Places lie in [0, p): the caller checks them. */
export const rotateHalves = op('rotate_halves', {
  dims: ['m', 'h', 'd', 'p', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: {
    x: tensor('T', 'm h d'),
    places: tensor('i32', 'm'),
    cos: tensor('f32', 'p e'),
    sin: tensor('f32', 'p e'),
  },
  outputs: { y: tensor('T', 'm h d') },
  facts: { places: { index: 'p' }, d: { atLeast: '2*e' } },
  body:
    ({ x, places, cos, sin }, { e }) =>
    (m, h, d) => {
      const pair = d < e ? d : d < 2 * e ? d - e : 0
      const partner = x(m, h, d < e ? d + e : d < 2 * e ? d - e : d)
      const turned = x(m, h, d) * cos(places(m), pair) + (d < e ? -partner : partner) * sin(places(m), pair)
      return { y: d < 2 * e ? turned : x(m, h, d) }
    },
})
