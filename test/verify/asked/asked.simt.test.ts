/** Kernels and graphs that users requested from other tools: each against plain JavaScript, in float32 on the CPU device, in thirds by rotation. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Device } from '../../../src/runtime/api/index.js'
import { inTurn } from '../../turns.js'
import { hold } from './claims.js'
import { families, graphNames } from './families.js'
import { asked } from './list.js'
import { openAsked } from './project.js'
import { accepted, refusals, saidBy } from './refusals.js'

let opened: Awaited<ReturnType<typeof openAsked>>
const device = (): Device => opened.device
beforeAll(async () => {
  opened = await openAsked(graphNames)
})
afterAll(async () => {
  await opened?.close()
})

describe.each(Object.entries(families))('%s', (_, references) => {
  it.each(inTurn(Object.entries(references)))('%s', async (_name, reference) => {
    const claims = await reference(device())
    expect(claims.length).toBeGreaterThan(0)
    for (const claim of claims) hold(claim)
  })
})

describe('the list', () => {
  const answers = [
    ...Object.entries(families).flatMap(([family, references]) => Object.keys(references).map((name) => `${family}.${name}`)),
    ...Object.keys(refusals).map((name) => `refused.${name}`),
  ]
  it('has an answer for every request, and names every answer', () => {
    expect(asked.length).toBeGreaterThanOrEqual(40)
    expect(asked.filter(([, , answer]) => !answers.includes(answer))).toEqual([])
    expect(answers.filter((answer) => !asked.some(([, , named]) => named === answer))).toEqual([])
  })
})

describe('inexpressible requests are refused', () => {
  it.each(Object.entries(refusals))('%s', (_, { code, reason, act }) => {
    const said = saidBy(act)
    expect(said).toContain(code)
    expect(said).toContain(reason)
  })
  it('and nothing else is', () => {
    expect(() => saidBy(accepted)).toThrow('nothing was refused')
  })
})
