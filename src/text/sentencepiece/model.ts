/**
 * SentencePiece's model file (`source.spm`, `spiece.model`, `tokenizer.model`): pieces with scores, and the normalisation of texts. Fields and their
 * numbers are those of its published schema, sentencepiece_model.proto; settings without support here are refused.
 */
import { usageError } from '../../errors.js'
import { type Charsmap, charsmapOf } from './charsmap.js'
import { type Fields, type Message, type Refuse, readMessage } from './wire.js'

const pieceTypes = { 1: 'normal', 2: 'unknown', 3: 'control', 4: 'user', 5: 'unused', 6: 'byte' } as const

export interface Piece {
  readonly text: string
  /** A float32: a log-probability, or the rank of a merge. */
  readonly score: number
  readonly type: (typeof pieceTypes)[keyof typeof pieceTypes]
}

export interface PieceModel {
  /** Pieces by id. */
  readonly pieces: readonly Piece[]
  readonly kind: 'unigram' | 'bpe'
  /** The id of the unknown piece. */
  readonly unknown: number
  /** Surface of the unknown piece. */
  readonly unknownText: string
  /** True if characters without a piece are written as bytes. */
  readonly byteFallback: boolean
  /** Replacements of characters. */
  readonly charsmap: Charsmap | undefined
  /** True if texts are prefixed with a blank. */
  readonly blankInFront: boolean
  /** True if blanks around a text are removed, and several in a row become one. */
  readonly fewerBlanks: boolean
}

const unread = (...numbers: readonly number[]): Fields => Object.fromEntries(numbers.map((number) => [number, 'unread']))
const range = (first: number, last: number): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** Pieces, trainer, normaliser, and denormaliser. Test samples in the file are ignored. */
const modelFields: Fields = { 1: 'bytes', 2: 'bytes', 3: 'bytes', ...unread(4), 5: 'bytes' }
const pieceFields: Fields = { 1: 'bytes', 2: 'float', 3: 'int' }
const trainer = { kind: 3, suffix: 24, byteFallback: 35, unknownText: 44 } as const
/** Training fields, without an effect on segmentation. */
const trainerFields: Fields = {
  ...unread(...range(1, 54)),
  ...{ [trainer.kind]: 'int', [trainer.suffix]: 'int', [trainer.byteFallback]: 'int', [trainer.unknownText]: 'bytes' },
}
const normaliser = { charsmap: 2, blankInFront: 3, fewerBlanks: 4, escaped: 5 } as const
const normaliserFields: Fields = { ...unread(1, 6), 2: 'bytes', 3: 'int', 4: 'int', 5: 'int' }

const kinds: Readonly<Record<number, string>> = { 1: 'unigram', 2: 'bpe', 3: 'word', 4: 'char' }
/** U+2047 between blanks. */
const usualUnknown = ' \u2047 '
const byteCount = 256

/**
 * Reads the bytes of a model file.
 * @throws usage `tokenizer.invalid` with the file and the error or the unsupported setting
 */
export function parsePieceModel(bytes: Uint8Array, path: string): PieceModel {
  const refuse: Refuse = (what) =>
    usageError('tokenizer.invalid', `${path} ${what}`, {
      hint: 'the file should be a model of SentencePiece; give token ids instead of text, or a tokenizer.json',
    })
  const file = readMessage(bytes, modelFields, refuse)
  const part = (field: number, fields: Fields, name: string): Message =>
    readMessage(Buffer.concat(file.bytes(field)), fields, (what) => refuse(`${what} (in its ${name})`))
  const [spec, normal] = [part(2, trainerFields, 'trainer_spec'), part(3, normaliserFields, 'normalizer_spec')]
  const written = part(5, normaliserFields, 'denormalizer_spec')
  if ((written.bytes(normaliser.charsmap).at(-1)?.length ?? 0) > 0) {
    throw refuse('replaces characters when a text is written (denormalizer_spec), which is not done here')
  }
  const kind = kinds[spec.int(trainer.kind) ?? 1]
  if (kind !== 'unigram' && kind !== 'bpe') throw refuse(`cuts texts by ${kind ?? 'an unknown rule'}, expected unigram or bpe`)
  if (spec.int(trainer.suffix) === 1) throw refuse('puts blanks after words (treat_whitespace_as_suffix), which is not done here')
  if (normal.int(normaliser.escaped) === 0)
    throw refuse('keeps blanks as they are (escape_whitespaces is false), which is not done here')
  const pieces = file.bytes(1).map((each, id) => pieceOf(each, (what) => refuse(`${what} (in piece ${id})`)))
  const byteFallback = spec.int(trainer.byteFallback) === 1
  const map = normal.bytes(normaliser.charsmap).at(-1)
  const unknownText = spec.bytes(trainer.unknownText).at(-1)
  return {
    ...{ pieces, kind, byteFallback, unknown: unknownOf(pieces, { byteFallback, refuse }) },
    unknownText: unknownText === undefined ? usualUnknown : new TextDecoder().decode(unknownText),
    charsmap: map === undefined || map.length === 0 ? undefined : charsmapOf(map, refuse),
    blankInFront: normal.int(normaliser.blankInFront) !== 0,
    fewerBlanks: normal.int(normaliser.fewerBlanks) !== 0,
  }
}

function pieceOf(bytes: Uint8Array, refuse: Refuse): Piece {
  const message = readMessage(bytes, pieceFields, refuse)
  const [text, score, number] = [message.bytes(1).at(-1), message.float(2) ?? 0, message.int(3) ?? 1]
  const type = Object.hasOwn(pieceTypes, number) ? pieceTypes[number as keyof typeof pieceTypes] : undefined
  if (text === undefined || text.length === 0) throw refuse('has a piece without a text')
  if (type === undefined) throw refuse(`has type ${number}, expected one from 1 to 6`)
  if (!Number.isFinite(score)) throw refuse(`has the score ${score}, expected a number`)
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text), score, type }
  } catch {
    throw refuse('has a text that is not UTF-8')
  }
}

/** Id of the one unknown piece. @throws the error made by `refuse`, for pieces that do not form a model */
function unknownOf(
  pieces: readonly Piece[],
  { byteFallback, refuse }: { readonly byteFallback: boolean; readonly refuse: Refuse },
): number {
  const counted = (type: Piece['type']): number => pieces.filter((each) => each.type === type).length
  const unknown = pieces.findIndex(({ type }) => type === 'unknown')
  if (counted('unknown') !== 1) throw refuse(`has ${counted('unknown')} unknown pieces among ${pieces.length}, expected one`)
  if (new Set(pieces.map(({ text }) => text)).size !== pieces.length) throw refuse('has a piece twice')
  if (!byteFallback) return unknown
  const bytes = new Set(pieces.filter(({ type }) => type === 'byte').map(({ text }) => text))
  const missing = range(0, byteCount - 1)
    .map(byteText)
    .find((text) => !bytes.has(text))
  if (missing !== undefined) throw refuse(`writes unknown characters as bytes, and has no piece ${missing}`)
  return unknown
}

/** Piece of a byte. */
export const byteText = (byte: number): string => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
