/**
 * Entry point of a packed job, which its `run` starts with the job's Node: runs the packed command in the packed project, and writes what it
 * prints with `--json` to `result.json` in the folder where `run` was called, or to the file that is named.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { provenanceOf } from '../bench/history/provenance.js'
import { environmentError } from '../errors.js'
import { namedFile } from '../output.js'
import { openDevice } from '../runtime/device.js'
import { deviceName } from '../runtime/device_name.js'
import { defaultDevice, prepareNative } from '../runtime/open.js'
import { hasCudaDevice, openJob } from '../toolchain/index.js'
import { describeFailure } from './failure.js'
import { resultText } from './job_result.js'
import { main } from './main.js'
import { version } from './version.js'

const log = (text: string): void => void process.stderr.write(text)

/** Runs a job. @returns the exit code of its command. @throws environment `job.damaged`, `job.result`, and errors of opening a device */
async function runJob(folder: string, file: string): Promise<number> {
  const path = resolve(file)
  const write = await namedFile(path, 'job.result')
  const { argv, project, commit } = await openJob(folder)
  const root = join(folder, project)
  const given = deviceOf(argv)
  const wanted = given === undefined ? undefined : deviceName(given)
  // The job has no CUDA plugin if no nvcc was there when it was packed: then it is built here.
  const isComplete =
    wanted === 'simt' || wanted === 'js' || !hasCudaDevice() || existsSync(join(folder, 'native/libheddle_cuda.so'))
  if (!isComplete) delete process.env.HEDDLE_NATIVE
  const { signal } = new AbortController()
  await prepareNative(wanted, { root, signal, onNotice: (text) => log(`${text}\n`) })
  const device = wanted ?? defaultDevice()
  const info = device === 'js' ? undefined : infoOf(device)
  let printed = ''
  const out = (text: string): void => {
    printed += text
  }
  const words = [...argv, ...(wanted === undefined ? ['--device', device] : []), '--json']
  const exitCode = await main(words, { root, out, log })
  // A check that fails has a result, a verb that ends with an error has none.
  const result: unknown = printed === '' ? undefined : JSON.parse(printed)
  if (!isResult(result)) return exitCode
  const { commit: _, ...about } = await provenanceOf({ root, signal, version, saved: '', info })
  await write(resultText({ argv, about: { ...about, ...(commit && { commit }) }, result }))
  log(`result: ${path}\n`)
  return exitCode
}

/** Value of the option `--device`, written with a space or `=`. */
function deviceOf(argv: readonly string[]): string | undefined {
  const at = argv.findLastIndex((word) => /^--device(=|$)/.test(word))
  return at < 0 ? undefined : (argv[at]?.split('=')[1] ?? argv[at + 1])
}

/** False for the JSON of an error. */
const isResult = (value: unknown): boolean => typeof value === 'object' && value !== null && !('error' in value)

function infoOf(name: Parameters<typeof openDevice>[0]) {
  const device = openDevice(name)
  try {
    return device.info()
  } finally {
    device.close()
  }
}

const [folder, file = 'result.json'] = process.argv.slice(2)
try {
  if (folder === undefined) throw environmentError('job.damaged', 'a job is started by its file run', { hint: './job/run' })
  process.exitCode = await runJob(folder, file)
} catch (error) {
  const { exitCode, text } = describeFailure(error, { verbose: false, cancelled: false })
  log(text)
  process.exitCode = exitCode
}
