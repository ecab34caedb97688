import { describe, expect, it } from 'vitest'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../../specs/graphs/encoder_layer.js'
import { encoderLayerPreGelu } from '../../specs/graphs/encoder_layer_pre.js'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { inputsOf, outputsOf } from '../../src/ir/graph.js'

describe('the encoder layer', () => {
  it('has the steps of a post-LN encoder, each primitive a node', () => {
    const steps = encoderLayerGelu.graph.nodes
      .filter((node) => node.kind !== 'view')
      .map((node) => `${node.name}: ${node.kind === 'op' ? node.op : node.kind}`)
    expect(steps).toEqual([
      'query: matmul',
      'key: matmul',
      'value: matmul',
      'queryBias: add_bias',
      'keyBias: add_bias',
      'valueBias: add_bias',
      'queryHeads: split_heads',
      'keyHeads: split_heads',
      'valueHeads: split_heads',
      'scores: matmul',
      'scaled: scale',
      'masked: mask_scores',
      'probabilities: softmax',
      'context: matmul',
      'merged: merge_heads',
      'projection: matmul',
      'projectionBias: add_bias',
      'attentionResidual: add',
      'attentionNorm: layer_norm',
      'fc1: matmul',
      'fc1Bias: add_bias',
      'fc1Activation: gelu',
      'fc2: matmul',
      'fc2Bias: add_bias',
      'outputResidual: add',
      'outputNorm: layer_norm',
    ])
  })

  it('differs between activations only in that node', () => {
    const ops = (layer: typeof encoderLayerGelu) => layer.graph.nodes.map((node) => (node.kind === 'op' ? node.op : node.kind))
    const plain = ops(encoderLayerGelu)
    expect(ops(encoderLayerGeluTanh)).toEqual(plain.map((op) => (op === 'gelu' ? 'gelu_tanh' : op)))
    expect(ops(encoderLayerRelu)).toEqual(plain.map((op) => (op === 'gelu' ? 'relu' : op)))
  })
})

describe('the pre-LN encoder layer', () => {
  const readers = (layer: typeof encoderLayerGelu, name: string): string[] => {
    const { nodes } = layer.graph
    const made = nodes.filter((node) => node.name === name).flatMap(outputsOf)
    return nodes.filter((node) => inputsOf(node).some((id) => made.includes(id))).map((node) => node.name)
  }

  it('has the nodes of the post-LN layer, with norms first', () => {
    const sorted = (nodes: readonly string[]) => [...nodes].sort()
    expect(sorted(encoderLayerPreGelu.nodes)).toEqual(sorted(encoderLayerGelu.nodes))
    expect(readers(encoderLayerPreGelu, 'attentionNorm')).toEqual(['query', 'key', 'value'])
    expect(readers(encoderLayerPreGelu, 'attentionResidual')).toEqual(['outputNorm', 'outputResidual'])
    expect(readers(encoderLayerPreGelu, 'outputNorm')).toEqual(['fc1'])
    expect(readers(encoderLayerPreGelu, 'outputResidual')).toEqual([])
    expect(readers(encoderLayerGelu, 'attentionNorm')).toEqual(['fc1', 'outputResidual'])
  })
})

describe('split_heads', () => {
  it('stores head by head, every offset once', () => {
    const extent = { b: 2, s: 3, h: 2, d: 4 }
    const offsets: number[] = []
    for (let b = 0; b < 2; b++)
      for (let h = 0; h < 2; h++)
        for (let s = 0; s < 3; s++) for (let d = 0; d < 4; d++) offsets.push(splitHeads.offset({ b, s, h, d }, extent))
    expect(offsets).toEqual(Array.from({ length: 48 }, (_, i) => i))
    expect(splitHeads.size(extent)).toBe(48)
  })
})
