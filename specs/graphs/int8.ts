/** Around quantised layers: activations between the form the rest of a model has and the one a plan's layers take. */
import { graph, tensor } from 'heddle'
import { quantize } from 'heddle/std'
import { col32 } from '../layouts/matrix.js'
import { col32FromRows, int8Col32FromRows, rowsFromCol32, rowsFromInt8Col32 } from '../ops/int8_col32.js'

/** Rows of tokens, padded or packed; the dimension is part of a graph, so there is one of each. */
const rows = ['b*s', 't'] as const
type Rows = (typeof rows)[number]
const suffix = (tokens: Rows): string => (tokens === 't' ? '_packed' : '')

export const toCol32 = rows.map((tokens) =>
  graph(`to_col32${suffix(tokens)}`, {
    inputs: { x: tensor('T', `${tokens} h*d`) },
    weights: {},
    build: (g, { x }) => {
      const made = g.apply(col32FromRows, { x }).y
      return { nodes: { made }, outputs: { y: made } }
    },
  }),
)

export const fromCol32 = rows.map((tokens) =>
  graph(`from_col32${suffix(tokens)}`, {
    inputs: { x: tensor('T', `${tokens} h*d`, col32) },
    weights: {},
    build: (g, { x }) => {
      const made = g.apply(rowsFromCol32, { x }).y
      return { nodes: { made }, outputs: { y: made } }
    },
  }),
)

export const toInt8 = rows.map((tokens) =>
  graph(`to_int8${suffix(tokens)}`, {
    inputs: { x: tensor('T', `${tokens} h*d`) },
    weights: {},
    attrs: ['x.inverse'],
    scales: { 'x.inverse': { site: 'x', as: 'inverse' } },
    build: (g, { x }, _, attrs) => {
      const made = g.apply(quantize, { x }, { inverse: attrs['x.inverse'] }).y
      return { nodes: { made }, outputs: { y: made } }
    },
  }),
)

export const toInt8Col32 = rows.map((tokens) =>
  graph(`to_int8_col32${suffix(tokens)}`, {
    inputs: { x: tensor('T', `${tokens} h*d`) },
    weights: {},
    attrs: ['x.inverse'],
    scales: { 'x.inverse': { site: 'x', as: 'inverse' } },
    build: (g, { x }, _, attrs) => {
      const made = g.apply(int8Col32FromRows, { x }, { inverse: attrs['x.inverse'] }).y
      return { nodes: { made }, outputs: { y: made } }
    },
  }),
)

export const fromInt8Col32 = rows.map((tokens) =>
  graph(`from_int8_col32${suffix(tokens)}`, {
    inputs: { x: tensor('i8', `${tokens} h*d`, col32) },
    weights: {},
    attrs: ['x.step'],
    scales: { 'x.step': { site: 'x', as: 'step' } },
    build: (g, { x }, _, attrs) => {
      const made = g.apply(rowsFromInt8Col32, { x }, { step: attrs['x.step'] }, {}, { T: 'T' }).y
      return { nodes: { made }, outputs: { y: made } }
    },
  }),
)
