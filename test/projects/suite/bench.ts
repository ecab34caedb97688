/** Four plans of the layer, at five shapes, in two storage types. */
import { defineSuite } from 'heddle'
import { both, feedForward, first, second } from './specs/index.js'

export default defineSuite({
  subject: feedForward,
  plans: ['unfused', first, second, both],
  versus: 'unfused',
  shapes: [1, 8, 64, 512, 4096].map((m) => ({ m })),
  dtypes: ['f32', 'f16'],
})
