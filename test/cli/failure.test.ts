import { describe, expect, test } from 'vitest'
import { describeFailure, failureJson } from '../../src/cli/failure.js'
import { environmentError, findingError, usageError } from '../../src/errors.js'
import { findPlan } from '../../src/program/plans.js'
import { refusal } from '../refusal.js'

const quiet = { verbose: false, cancelled: false }

describe('describeFailure', () => {
  test.each([
    [findingError('gen.check', 'differs'), 1],
    [usageError('run.model', 'no model'), 2],
    [environmentError('device.unavailable', 'no GPU'), 3],
  ])('%s has its exit code and one line', (error, exitCode) => {
    expect(describeFailure(error, quiet)).toEqual({ exitCode, text: `error[${error.code}]: ${error.message}\n` })
  })

  test('a hint is on a separate line', () => {
    const { text } = describeFailure(usageError('plan.unknown', 'unknown plan x', { hint: 'known: unfused' }), quiet)
    expect(text).toBe('error[plan.unknown]: unknown plan x\nhint: known: unfused\n')
  })

  test('only --verbose shows stacks, of causes too', () => {
    const error = usageError('plan.node', 'outer', { cause: new Error('inner') })
    expect(describeFailure(error, quiet).text).not.toContain('    at ')
    const { text } = describeFailure(error, { ...quiet, verbose: true })
    expect(text).toContain('    at ')
    expect(text).toContain('caused by Error: inner')
  })

  test('an unforeseen error is called internal', () => {
    expect(describeFailure(new TypeError('x is not a function'), quiet)).toEqual({
      exitCode: 1,
      text: 'internal error: x is not a function\nhint: run again with --verbose for the stack, and report it\n',
    })
  })

  test('a full disk is the environment’s fault', () => {
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    expect(describeFailure(full, quiet)).toEqual({ exitCode: 3, text: 'error[system.enospc]: no space left on device\n' })
  })

  test('after Ctrl-C every error is its consequence', () => {
    expect(describeFailure(new Error('killed'), { ...quiet, cancelled: true })).toEqual({ exitCode: 130, text: 'cancelled\n' })
  })
})

describe('in a portable bundle', () => {
  const portable = { ...quiet, portable: true }

  test.each(['run heddle gen', 'run `heddle gen` first', 'run heddle build --target cuda'])(
    '"%s" is reported about the project',
    (hint) => {
      const error = environmentError('library.kernel', 'there is no kernel one__f32', { hint })
      expect(describeFailure(error, quiet).text).toBe(`error[library.kernel]: there is no kernel one__f32\nhint: ${hint}\n`)
      const anew = `the bundle compiles nothing and was packed without it: in the project, ${hint}; then run heddle bundle, and unpack the new bundle`
      expect(describeFailure(error, portable).text).toBe(`error[library.kernel]: there is no kernel one__f32\nhint: ${anew}\n`)
      expect(JSON.parse(failureJson(error, portable))).toMatchObject({ error: { hint: anew } })
    },
  )

  test.each([{ hint: 'install binutils' }, {}])('other hints stay as they are: %o', (details) => {
    const error = environmentError('bundle.strip', 'no strip', details)
    expect(describeFailure(error, portable)).toEqual(describeFailure(error, quiet))
  })

  test('a plan that was not packed is called that, with those that were', () => {
    const error = refusal(() => findPlan('best-encoder', { 'ft-v1': {} }))
    expect(describeFailure(error, portable).text).toBe(
      'error[plan.unknown]: the bundle was packed without it: unknown plan best-encoder\n' +
        'hint: known: unfused, ft-v1; for another, run heddle bundle with --model and --plan in the project, and unpack the new bundle\n',
    )
  })
})

describe('failureJson', () => {
  const place = { file: 'specs/a.ts', line: 3, column: 5, code: 'HED101', message: 'unknown identifier x' }
  const parsed = (error: unknown, cancelled = false): unknown => JSON.parse(failureJson(error, { cancelled }))
  test.each([
    [usageError('plan.node', 'wrong', { hint: 'right' }), { code: 'plan.node', message: 'wrong', hint: 'right' }],
    [usageError('plan.node', 'wrong', { places: [place] }), { code: 'plan.node', message: 'wrong', place }],
    [
      usageError('plan.node', 'wrong', { places: [place, place] }),
      { code: 'plan.node', message: 'wrong', place, places: [place, place] },
    ],
    [Object.assign(new Error('full'), { code: 'ENOSPC' }), { code: 'system.enospc', message: 'full' }],
    [Object.assign(new Error('error: no'), { code: 'commander.unknownOption' }), { code: 'cli.usage', message: 'no' }],
    [new TypeError('x'), { code: 'internal', message: 'x' }],
  ])('says of %o what tools need', (error, expected) => expect(parsed(error)).toEqual({ error: expected }))
  test('after Ctrl-C is that', () =>
    expect(parsed(new Error('x'), true)).toEqual({ error: { code: 'cancelled', message: 'cancelled' } }))
})
