/** The default plan of a model fits the device and the storage type, and never changes the results of the model. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type Manifest, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { bertLayers, seq2seqLayers } from '../../src/models/assembly/layer_graphs.js'
import { choosePlan } from '../../src/runtime/default_plan.js'
import type { NativeDeviceInfo } from '../../src/runtime/native.js'

const manifest = manifestSchema.parse(JSON.parse(readFileSync('generated/manifest.json', 'utf8')))
const gpu = (computeCapability: string): NativeDeviceInfo => ({
  kind: 'cuda',
  name: 'some GPU',
  memoryBytes: 1,
  memoryFreeBytes: 1,
  computeCapability,
  multiprocessors: 1,
  driverVersion: 0,
  runtimeVersion: 0,
  matmulVersion: 1,
})
const bert = bertLayers({ family: 'bert', activation: 'gelu' })
const chosen = (info: NativeDeviceInfo, dtype: 'f32' | 'f16' | 'bf16', layers = bert, of: Manifest = manifest) =>
  choosePlan(of, info, dtype, layers).name

it('is the fused one if tensor cores support its matmuls, on any such GPU', () => {
  for (const capability of ['8.0', '8.6', '9.0', '10.0', '12.0']) {
    expect(chosen(gpu(capability), 'f16')).toBe('best-encoder')
    expect(chosen(gpu(capability), 'bf16')).toBe('best-encoder')
  }
})

it('leaves matmuls to the library otherwise: float32, older GPUs', () => {
  expect(chosen(gpu('9.0'), 'f32')).toBe('ft-v2.1')
  expect(chosen(gpu('7.0'), 'f16')).toBe('ft-v2.1')
})

it('is the reference on the CPU device, which emulates threads', () => {
  expect(chosen({ ...gpu('9.0'), kind: 'simt' }, 'f16')).toBe('unfused')
})

it('covers every layer of the model', () => {
  for (const preNorm of [true, false]) {
    const layers = seq2seqLayers({ preNorm, activation: 'gelu' })
    const name = chosen(gpu('9.0'), 'f16', layers)
    expect(name).toBe('best-decoder')
    expect(Object.keys(manifest.plans?.[name] ?? {})).toEqual(expect.arrayContaining([...layers]))
  }
  expect(choosePlan(manifest, gpu('9.0'), 'f16', ['nobody_knows'])).toEqual({
    name: 'unfused',
    reason: 'no plan covers nobody_knows in f16',
  })
})

it('has its kernels in the storage type', () => {
  const kernels = manifest.kernels.filter(({ key }) => key !== 'attention__bf16')
  expect(chosen(gpu('9.0'), 'bf16', bert, { ...manifest, kernels })).toBe('ft-v2.1')
  expect(chosen(gpu('9.0'), 'f16', bert, { ...manifest, kernels })).toBe('best-encoder')
})

it('is not an int8 plan, even if nothing else covers the model', () => {
  const plans = Object.fromEntries(Object.entries(manifest.plans ?? {}).filter(([name]) => /int8|ft-v3/.test(name)))
  expect(Object.keys(plans).length).toBeGreaterThan(5)
  expect(chosen(gpu('9.0'), 'f16', bert, { ...manifest, plans })).toBe('unfused')
})

it('is that of int8 activations for a model that is stored for it, on any device, and for no other', () => {
  const layers = ['llama_prompt', 'llama_step']
  const floats = (info: NativeDeviceInfo) => choosePlan(manifest, info, 'f16', layers)
  const int8 = (info: NativeDeviceInfo, of: Manifest = manifest) => choosePlan(of, info, 'f16', layers, 'int8')
  expect(floats(gpu('9.0')).name).toBe('best-llama')
  for (const info of [gpu('8.0'), gpu('9.0'), { ...gpu('9.0'), kind: 'simt' } as const]) {
    expect(int8(info)).toEqual({
      name: 'best-llama-w8a8',
      reason: 'int8 weights and activations, as the model is stored; fewest launches',
    })
  }
  // Weight-only int8 plans do not correspond to the storage of the model.
  const { 'best-llama-w8a8': _, 'fasterllama-v1': __, ...plans } = manifest.plans ?? {}
  expect(Object.keys(plans)).toContain('best-llama-int8w')
  expect(int8(gpu('9.0'), { ...manifest, plans })).toEqual({
    name: 'best-llama',
    reason: `${floats(gpu('9.0')).reason}; its int8 weights are used as floats, as no plan covers llama_prompt and llama_step in int8`,
  })
})

it('may be a plan that a user adds', () => {
  const layer = manifest.plans?.['best-encoder']?.[bert[0] ?? '']
  if (layer === undefined) throw new Error('no such plan')
  const fewer = { ...layer, nodes: layer.nodes.slice(1) }
  expect(chosen(gpu('9.0'), 'f16', bert, { ...manifest, plans: { ...manifest.plans, mine: { [bert[0] ?? '']: fewer } } })).toBe(
    'mine',
  )
})

it('is not one for few rows, which runs by way of the plan that names it', () => {
  const [layer = ''] = bert
  const whole = manifest.plans?.['best-encoder']?.[layer]
  if (whole === undefined) throw new Error('no such layer')
  const { inputs, outputs } = whole
  const fewer = { ...whole, nodes: whole.nodes.slice(1), inputs, outputs }
  const byRows = { rows: { factor: 1, dims: ['b'] }, few: [{ most: 1, plan: 'fewer', graph: fewer }] }
  const plansWith = (graph: typeof whole): Manifest => ({
    ...manifest,
    plans: { 'best-encoder': { [layer]: graph }, fewer: { [layer]: fewer } },
  })
  expect(chosen(gpu('9.0'), 'f16', [layer], plansWith({ ...whole, byRows }))).toBe('best-encoder')
  // A twin: it has fewer launches.
  expect(chosen(gpu('9.0'), 'f16', [layer], plansWith(whole))).toBe('fewer')
})
