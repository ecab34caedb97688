/**
 * The simt device's threads: hand-written kernels run as CUDA would run them, in every order, and every kernel with a planted fault is refused with
 * a line that names thread and fault. Each missing barrier has a working twin.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const orders = ['forward', 'reverse', 'shuffle']

let shop: Workshop
let plugin: string
let driver: string

beforeAll(async () => {
  shop = await workshop()
  plugin = await shop.plugin()
  driver = await shop.program('driver', ['driver.cpp', 'basics.cu', 'faults.cu'])
})

afterAll(() => shop.remove())

const run = (cases: 'working' | 'failing', env: Record<string, string> = {}): Promise<ReadonlyMap<string, Check>> =>
  checks(driver, [plugin, cases], env)

const range = <T>(count: number, value: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => value(i))

/** Input values of the driver. */
const inputValue = (i: number): number => ((i * 5) % 7) - 3

describe.each(orders)('in %s order', (order) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await run('working', { HEDDLE_SIMT_ORDER: order })
  })

  const expectValues = (name: string, values: readonly (number | null)[]): void => {
    expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values })
  }

  test('three-dimensional blocks in a three-dimensional grid cover each element once', () => {
    expectValues(
      'index_math',
      range(720, (i) => i * 3 + 1),
    )
  })

  test('a grid with no blocks does nothing', () => expectValues('empty', [-1, -1, -1, -1]))

  test('a block reduces a row through shared memory', () => {
    const rowSum = (row: number): number => range(1000, (c) => inputValue(row * 1000 + c)).reduce((a, b) => a + b, 0)
    expectValues('row_sum', range(9, rowSum))
  })

  test('shuffles by xor, index, down, and up in segments; 8-byte values too', () => {
    const expected = (thread: number): number[] => {
      const lane = thread % 32
      return [496, 31 - lane, lane < 29 ? lane + 3 : lane, lane % 8 >= 3 ? lane - 3 : lane, Math.trunc(1.5 * (lane ^ 1))]
    }
    expectValues('shuffles', range(192, expected).flat())
  })

  test('each half of a warp votes with its own mask', () => {
    const ballot = (from: number): number =>
      range(16, (i) => ((from + i) % 3 === 0 ? 2 ** (from + i) : 0)).reduce((a, b) => a + b, 0) | 0
    const most = (from: number): number => Math.max(...range(16, (i) => ((from + i) * 5) % 32))
    const expected = (thread: number): number[] => (thread % 32 < 16 ? [ballot(0), 0, 1, most(0)] : [ballot(16), 1, 0, most(16)])
    expectValues('votes', range(64, expected).flat())
  })

  test('__syncwarp orders shared memory between lanes', () => {
    expectValues(
      'warp_exchange',
      range(64, (i) => ((63 - i) ^ 1) * 7),
    )
  })

  test('packs move four neighbours and convert', () => expectValues('packs', range(32, inputValue)))

  test('shared memory is NaN at the start of every block', () =>
    expectValues(
      'poison',
      range(12, () => 1),
    ))
})

test('results depend neither on the number of workers nor on watching the outputs', async () => {
  const environments = [{ HEDDLE_SIMT_THREADS: '1' }, { HEDDLE_SIMT_THREADS: '3' }, { HEDDLE_SIMT_RACE: '1' }]
  const [one, three, watched] = await Promise.all(environments.map((env) => run('working', env)))
  const values = (results: ReadonlyMap<string, Check> | undefined): unknown[] =>
    [...(results?.values() ?? [])].filter(({ name }) => name !== 'leaked')
  expect(values(three)).toEqual(values(one))
  expect(values(watched)).toEqual(values(one))
})

test.each(['working', 'failing'] as const)('%s kernels leak no memory', async (cases) => {
  // The allocator counts its per-thread cache as in use.
  const results = await run(cases, { HEDDLE_SIMT_THREADS: '1', GLIBC_TUNABLES: 'glibc.malloc.tcache_count=0' })
  expect(results.get('leaked')?.values).toEqual([0])
})

test('the portable fiber switch behaves as the native one', async () => {
  const portable = await shop.program('portable', ['driver.cpp', 'basics.cu', 'faults.cu'], ['-DHEDDLE_SIMT_UCONTEXT'])
  const single = { HEDDLE_SIMT_THREADS: '1' }
  // A stack that overflowed into its neighbour leaves arbitrary values there.
  const settled = (results: ReadonlyMap<string, Check>): unknown[] =>
    [...results.values()]
      .filter(({ name }) => name !== 'leaked')
      .map((check) => (check.name === 'deep_stack' ? check.message : check))
  for (const cases of ['working', 'failing'] as const) {
    expect(settled(await checks(portable, [plugin, cases], single))).toEqual(settled(await run(cases, single)))
  }
})

test('an unknown order is refused', async () => {
  const results = await run('working', { HEDDLE_SIMT_ORDER: 'sideways' })
  expect(results.get('row_sum')).toMatchObject({
    status: status.invalid,
    message: "HEDDLE_SIMT_ORDER is 'sideways': forward, reverse or shuffle",
  })
})

describe('launches that are refused', () => {
  const refusals = {
    too_many_threads: 'kernel wide: block (1025,1,1) is not between 1 and 1024 threads with z at most 64',
    too_many_rows: 'kernel tall: grid (1,65536,1) is larger than (2147483647,65535,65535)',
    missing_buffer: 'kernel short: y is buffer 4 and the launch has fewer',
  }
  test.each(Object.entries(refusals))('%s', async (name, message) => {
    expect((await run('working')).get(name)).toMatchObject({ status: status.invalid, message })
  })
})

const at = (thread: number, block = 0): string => `, block (${block},0,0), thread (${thread},0,0)`

/** The whole message of each fault after `kernel NAME: `, in forward order on one worker. */
const faults: Record<string, string | RegExp> = {
  read_high: `read of x[16] is out of bounds (16 elements)${at(7, 1)}`,
  read_low: `read of x[-1] is out of bounds (16 elements)${at(0)}`,
  write_high: `write of y[16] is out of bounds (16 elements)${at(5, 1)}`,
  write_fiber: `write of y[16] is out of bounds (16 elements)${at(7, 1)}`,
  pack_misaligned: `read of x[5..8] is not aligned to 16 bytes (16 elements)${at(0)}`,
  pack_past_end: `read of x[12..15] is out of bounds (15 elements)${at(0)}`,
  pack_below: `read of x[-4..-1] is out of bounds (16 elements)${at(0)}`,
  barrier_for_some: /^barrier divergence in block \(0,0,0\): 31 of 256 threads wait at faults\.cu:\d+, 225 exited$/,
  early_exit: /^barrier divergence in block \(0,0,0\): 63 of 64 threads wait at faults\.cu:\d+, 1 exited$/,
  two_barriers:
    /^barrier divergence in block \(0,0,0\): 10 of 64 threads wait at faults\.cu:\d+, 54 wait at another barrier \(faults\.cu:\d+\)$/,
  barrier_and_warp:
    /^barrier divergence in block \(0,0,0\): 32 of 64 threads wait at faults\.cu:\d+, 31 exited, 1 wait for their warp \(faults\.cu:\d+\)$/,
  missing_lane:
    /^warp divergence in block \(0,0,0\), warp 0: lanes 0xffffff7f wait at faults\.cu:\d+ for lanes 0xffffffff, lanes 0x00000080 have exited$/,
  two_shuffles:
    /^warp divergence in block \(0,0,0\), warp 0: lanes 0x0000ffff wait at faults\.cu:\d+ for lanes 0xffffffff, lanes 0xffff0000 wait elsewhere$/,
  absent_lanes:
    /^warp divergence in block \(0,0,0\), warp 1: lanes 0x000000ff wait at faults\.cu:\d+ for lanes 0x0000ffff, lanes 0x0000ff00 do not exist$/,
  self_not_in_mask: /^lane 3 calls with mask 0xfffffff7, which leaves it out, at faults\.cu:\d+, block/,
  source_not_in_mask: /^lane 0 shuffles from lane 20, which the mask 0x0000ffff at faults\.cu:\d+ leaves out, block/,
  race_read: `data race: shared slots[1] is written here and was read by thread (0,0,0) with no barrier between${at(1)}`,
  race_write: `data race: shared slot[0] is written here and was read by several threads with no barrier between${at(64)}`,
  race_warp: `data race: shared slots[30] is read here and was written by thread (30,0,0) with no barrier between${at(31)}`,
  race_other_warp: `data race: shared slots[32] is written here and was read by thread (31,0,0) with no barrier between${at(32)}`,
  race_add: `data race: shared sum[0] is read here and was written by several threads with no barrier between${at(40)}`,
  race_set: `data race: shared sum[0] is added to here and was written by thread (0,0,0) with no barrier between${at(1)}`,
  shared_high: `shared slots[8] is out of bounds (8 elements)${at(0)}`,
  shared_low: `shared slots[-1] is out of bounds (8 elements)${at(0)}`,
  sync_not_announced: /^threads meet at faults\.cu:\d+ but the launch says that they never do, block/,
  barrier_not_announced: /^the block meets at faults\.cu:\d+ but the launch says that it never does, block/,
  exception: 'a C++ exception left the kernel',
  exception_fiber: 'a C++ exception left the kernel',
  deep_stack: /^a thread needs more than 65536 bytes of stack, block/,
}

describe('faults', () => {
  let forward: ReadonlyMap<string, Check>
  let others: ReadonlyMap<string, Check>[]
  beforeAll(async () => {
    forward = await run('failing', { HEDDLE_SIMT_THREADS: '1' })
    others = await Promise.all(['reverse', 'shuffle'].map((order) => run('failing', { HEDDLE_SIMT_ORDER: order })))
  })

  test.each(Object.entries(faults))('%s', (name, message) => {
    const result = forward.get(name)
    expect(result?.status).toBe(status.fault)
    const text = result?.message.replace(`kernel ${name}: `, '')
    if (typeof message === 'string') expect(text).toBe(message)
    else expect(text).toMatch(message)
    for (const other of others) expect(other.get(name)?.status).toBe(status.fault)
  })

  test.each(['race_read_twin', 'race_write_twin', 'race_warp_twin', 'race_add_twin'])('%s, with its barrier, works', (name) => {
    for (const results of [forward, ...others]) expect(results.get(name)).toMatchObject({ status: status.ok, message: '' })
  })

  test('two threads that write one element of an output are found on request', async () => {
    expect(forward.get('same_element')?.status).toBe(status.ok)
    const watched = await run('failing', { HEDDLE_SIMT_THREADS: '1', HEDDLE_SIMT_RACE: '1' })
    expect(watched.get('same_element')).toMatchObject({
      status: status.fault,
      message: `kernel same_element: data race: y[0] is also written by block (0,0,0), thread (0,0,0)${at(1)}`,
    })
  })
})
