/** GitHub's workflows and the action: each command, flag and input exists. No runner has run them. */
import { describe, expect, it } from 'vitest'
import { textOf } from '../docs/pages.js'
import { faultsOf, files } from './workflows.js'

const check = '.github/actions/check/action.yml'
const ci = '.github/workflows/ci.yml'

it('there are an action, workflows of the project, and one for users', () => {
  expect(files).toEqual(expect.arrayContaining([check, ci, '.github/workflows/release.yml', 'templates/ci/kernels.yml']))
})

it.each(files)('%s can work', async (file) => {
  expect(await faultsOf(file, textOf(file))).toEqual([])
})

it('covers three systems and two versions of Node', () => {
  const text = textOf(ci)
  for (const part of ['ubuntu-24.04', 'macos-15', 'windows-2025', 'node: [22, 24]', 'device: js']) expect(text).toContain(part)
})

/** An input as GitHub puts it into a command. */
const expression = ['$', '{{ inputs.suite }}'].join('')

describe('the check finds', () => {
  const changed = (file: string, from: string, to: string): Promise<readonly string[]> => {
    const text = textOf(file)
    expect(text).toContain(from)
    return faultsOf(file, text.replace(from, to))
  }

  it.each([
    ['a flag that a verb lacks', check, 'gen --check', 'gen --fast', 'npx heddle gen --fast: there is no --fast'],
    ['a flag in an expansion', check, '{DEVICE:+--device', '{DEVICE:+--gpu', 'there is no --gpu'],
    ['a verb that is gone', check, 'bench history', 'weave history', 'there is no weave'],
    ['an input that is not declared', check, 'inputs.suite !=', 'inputs.suites !=', 'there is no input suites'],
    ['a step without a shell', check, '      shell: bash\n', '', 'no shell'],
    ['an expression in a command', check, '"$SUITE"', expression, 'an expression'],
    [
      'an input that the action lacks',
      ci,
      '          directory: my-op',
      '          folder: my-op',
      './.github/actions/check has no input folder',
    ],
    ['an action that is not there', ci, './.github/actions/check', './.github/actions/weave', 'there is no file'],
    ['an action without a version', ci, 'actions/checkout@v4', 'actions/checkout', 'actions/checkout has no version'],
    ['a script that is not there', ci, 'npm run build', 'npm run weave', 'there is no script weave'],
    ['a file that is not there', ci, '.ci/run', '.ci/runs', 'there is no file .ci/runs'],
  ])('%s', async (_, file, from, to, fault) => {
    expect((await changed(file, from, to)).join('\n')).toContain(fault)
  })

  it('text that is not YAML, and a key that is given twice', async () => {
    await expect(changed(ci, 'jobs:', 'jobs: [')).rejects.toThrow()
    await expect(changed(ci, 'name: ci', 'name: ci\nname: twice')).rejects.toThrow('unique')
  })
})
