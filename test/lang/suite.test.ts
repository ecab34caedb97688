/** `defineSuite`: defaults, names of declarations, and refused configurations. */
import { describe, expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { graph, plan } from '../../src/lang/index.js'
import { defineSuite, type SuiteConfig } from '../../src/lang/suite.js'
import { tensor } from '../../src/lang/tensor.js'

const layer = graph('layer', {
  inputs: { x: tensor('T', 'm n') },
  weights: { w: tensor('T', 'k n') },
  build: (g, { x }, { w }) => {
    const y = g.matmul('m n, k n -> m k', x, w)
    return { nodes: { y }, outputs: { y } }
  },
})
const whole = plan('whole', layer, { groups: { whole_layer: ['y'] } })
const shapes = [{ m: 1 }, { m: 64 }]

describe('a suite', () => {
  it('has names for declarations, and defaults', () => {
    expect(defineSuite({ plans: ['unfused', whole], shapes, versus: whole })).toEqual({
      kind: 'suite',
      name: 'layer',
      subject: 'layer',
      plans: ['unfused', 'whole'],
      shapes,
      dtypes: ['f32'],
      peers: {},
      versus: 'whole',
      repeats: 30,
    })
    expect(defineSuite({ subject: layer, shapes })).toMatchObject({ subject: 'layer', plans: undefined, versus: undefined })
    expect(defineSuite({ subject: 'rms_norm', name: 'norms', shapes })).toMatchObject({ subject: 'rms_norm', name: 'norms' })
  })

  const wrong: readonly (readonly [what: string, config: unknown, message: string])[] = [
    ['nothing', undefined, 'the configuration'],
    ['no shapes', { subject: layer }, 'shapes'],
    ['an empty list of shapes', { subject: layer, shapes: [] }, 'shapes'],
    ['a fraction', { subject: layer, shapes: [{ m: 1.5 }] }, 'shapes.0.m'],
    [
      'a shape twice',
      {
        subject: layer,
        shapes: [
          { m: 1, n: 2 },
          { n: 2, m: 1 },
        ],
      },
      'shapes: one of them is given twice',
    ],
    ['an unknown type', { subject: layer, shapes, dtypes: ['f64'] }, 'dtypes.0'],
    ['a plan that is none', { subject: layer, shapes, plans: [3] }, 'plans.0: expected a plan or its name'],
    ['no subject', { plans: ['unfused'], shapes }, 'subject is missing'],
    ['a plan of another graph', { subject: 'other', plans: [whole], shapes }, 'a plan is for layer, and the subject is other'],
    ['an unknown part', { subject: layer, shapes, hosts: [] }, 'Unrecognized key: "hosts"'],
    ['a peer without a command', { subject: layer, shapes, peers: { torch: [] } }, 'peers.torch'],
    ['a peer with the name of a plan', { plans: [whole], shapes, peers: { whole: ['python3'] } }, 'whole is a plan and a peer'],
    ['a comparison with nothing', { plans: [whole], shapes, versus: 'unfused' }, 'versus is unfused, which is not timed'],
  ]
  it.each(wrong)('with %s is refused', (_, config, message) => {
    const act = (): unknown => defineSuite(config as SuiteConfig)
    expect(act).toThrow(HeddleError)
    expect(act).toThrow(message)
  })
})
