/**
 * Rotary position embedding in the order of the article (Su et al. 2021) and of Meta's files. Elements `2c` and `2c + 1` of a head are rotated
 * together by the angle of their place. Models here rotate halves (`rotate_halves`), with weights whose rows are reordered on loading; this body is
 * for graphs over heads as they are stored. If a head has more than `2e` elements, the last ones stay unchanged.
 */
import { idiv, op, tensor } from 'heddle'

/** Dims: m tokens, h heads, d elements of a head, p places of the tables, e pairs. Places lie in [0, p): the caller checks them. */
export const rotatePairs = op('rotate_pairs', {
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
      const isFirst = d % 2 === 0
      const pair = d < 2 * e ? idiv(d, 2) : 0
      const partner = x(m, h, d < 2 * e ? (isFirst ? d + 1 : d - 1) : d)
      const turned = x(m, h, d) * cos(places(m), pair) + (isFirst ? -partner : partner) * sin(places(m), pair)
      return { y: d < 2 * e ? turned : x(m, h, d) }
    },
})
