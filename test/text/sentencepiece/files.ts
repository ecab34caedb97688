/**
 * Model files of SentencePiece as tests write them, by its published schema: messages, and rules of normalisation as a double array. No library
 * of SentencePiece is here, so that these are small files of our own.
 */

export interface PieceFixture {
  readonly text: string
  readonly score?: number
  /** 1 normal, 2 unknown, 3 control, 4 user's, 5 unused, 6 byte. */
  readonly type?: number
}

export interface ModelFixture {
  readonly pieces: readonly PieceFixture[]
  /** 1 unigram, 2 bpe. */
  readonly kind?: number
  readonly byteFallback?: boolean
  readonly rules?: Readonly<Record<string, string>>
  readonly blankInFront?: boolean
  readonly fewerBlanks?: boolean
  /** Additional fields: of the model, the trainer and the normaliser. */
  readonly more?: readonly Buffer[]
  readonly moreOfTrainer?: readonly Buffer[]
  readonly moreOfNormaliser?: readonly Buffer[]
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

export const intField = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8), varint(value)])
export const bytesField = (field: number, value: Uint8Array | string): Buffer => {
  const bytes = Buffer.from(value as Uint8Array)
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes])
}
export function floatField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return Buffer.concat([varint(field * 8 + 5), bytes])
}

const pieceBytes = ({ text, score, type }: PieceFixture): Buffer =>
  Buffer.concat([
    bytesField(1, text),
    ...(score === undefined ? [] : [floatField(2, score)]),
    ...(type === undefined ? [] : [intField(3, type)]),
  ])

/** The bytes of a model file. */
export function modelBytes(model: ModelFixture): Buffer {
  const flag = (field: number, value: boolean | undefined): Buffer[] =>
    value === undefined ? [] : [intField(field, Number(value))]
  const trainer = [...flag(35, model.byteFallback), ...(model.kind === undefined ? [] : [intField(3, model.kind)])]
  const normaliser = [
    bytesField(1, 'own'),
    ...(model.rules === undefined ? [] : [bytesField(2, charsmapBytes(model.rules))]),
    ...flag(3, model.blankInFront),
    ...flag(4, model.fewerBlanks),
  ]
  return Buffer.concat([
    ...model.pieces.map((piece) => bytesField(1, pieceBytes(piece))),
    bytesField(
      2,
      Buffer.concat([intField(4, model.pieces.length), intField(43, -1), ...trainer, ...(model.moreOfTrainer ?? [])]),
    ),
    bytesField(3, Buffer.concat([...normaliser, ...(model.moreOfNormaliser ?? [])])),
    ...(model.more ?? []),
  ])
}

interface Node {
  readonly children: Map<number, Node>
  place: number
  value?: number
}

/** Rules in their compiled form: each node of the trie has 256 separate units, so that none overlaps another. */
export function charsmapBytes(rules: Readonly<Record<string, string>>): Buffer {
  const nodes: Node[] = []
  const node = (): Node => {
    const made: Node = { children: new Map(), place: 0 }
    nodes.push(made)
    return made
  }
  const root = node()
  let texts = Buffer.alloc(0)
  for (const [from, to] of Object.entries(rules)) {
    let at = root
    for (const byte of Buffer.from(from)) {
      const next = at.children.get(byte) ?? node()
      at.children.set(byte, next)
      at = next
    }
    at.value = texts.length
    texts = Buffer.concat([texts, Buffer.from(to), Buffer.from([0])])
  }
  const units = new Uint32Array((nodes.length + 1) * 256)
  for (const [i, each] of nodes.entries()) {
    // Children of a node lie in its 256 units, and its value in the first of them, which no byte but zero leads to.
    const base = (i + 1) * 256
    const offset = each.place ^ base
    units[each.place] = ((units[each.place] ?? 0) | (offset << 10) | (each.value === undefined ? 0 : 0x100)) >>> 0
    if (each.value !== undefined) units[base] = (each.value | 0x80000000) >>> 0
    for (const [byte, child] of each.children) {
      child.place = base ^ byte
      units[child.place] = byte
    }
  }
  const size = Buffer.alloc(4)
  size.writeUInt32LE(units.byteLength)
  return Buffer.concat([size, Buffer.from(units.buffer), texts])
}
