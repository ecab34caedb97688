/** What a graph refuses that untyped JavaScript declares without a part that types demand. */
import { expect, it } from 'vitest'
import { graph, tensor } from '../../src/index.js'
import { refusal } from '../refusal.js'

const x = tensor('T', 'm n')
const whole = {
  inputs: { x },
  weights: {},
  build: (_: unknown, inputs: { x: object }) => ({ nodes: {}, outputs: { x: inputs.x } }),
}
/** Untyped JavaScript as the compiler sees it. */
const declare = (config: unknown) => graph('layer', config as never)

it('takes the whole declaration', () => expect(declare(whole).name).toBe('layer'))

it.each<[string, unknown]>([
  ['config', undefined],
  ['inputs', { ...whole, inputs: undefined }],
  ['weights', { ...whole, weights: undefined }],
  ['weights', { ...whole, weights: null }],
  ['build', { ...whole, build: undefined }],
  ['result of build', { ...whole, build: () => undefined }],
  ['nodes', { ...whole, build: () => ({ outputs: {} }) }],
  ['outputs', { ...whole, build: () => ({ nodes: {} }) }],
])('refuses a graph without %s', (part, config) =>
  expect(refusal(() => declare(config))).toMatchObject({
    class: 'usage',
    code: 'graph.config',
    message: `graph layer has no ${part}`,
  }),
)
