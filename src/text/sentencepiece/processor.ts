/** Converts a text to SentencePiece's pieces and back, by a model file: the part of the library that Hugging Face's tokenizers use. */
import { bytePairsOf } from './byte_pairs.js'
import { byteText, type PieceModel } from './model.js'
import { blank, normaliserOf } from './normalise.js'
import { unigramOf } from './unigram.js'

export interface PieceProcessor {
  /**
   * Pieces of a text. Characters without a piece become bytes, or else one piece per run of such characters.
   * @param blankInFront true to prefix the text with a blank; the model's setting by default
   */
  pieces(text: string, blankInFront?: boolean): readonly string[]
  /** Text of pieces. A string that is not a piece of the model is copied unchanged. */
  text(pieces: readonly string[]): string
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The processor of a model. */
export function processorOf(model: PieceModel): PieceProcessor {
  const { pieces: all, unknown, byteFallback, unknownText, fewerBlanks } = model
  const own = all.filter(({ type }) => type === 'user').map(({ text }) => text)
  const normalise = normaliserOf(model, own)
  const cut = model.kind === 'unigram' ? unigramOf(model) : bytePairsOf(model)
  const types = new Map(all.map(({ text, type }) => [text, type]))
  const bytes = new Map(Array.from({ length: 256 }, (_, byte) => [byteText(byte), byte]))

  const ofPiece = (piece: string, first: boolean): { readonly text: string; readonly front: boolean } => {
    const type = types.get(piece)
    if (type === 'control') return { text: '', front: false }
    if (type === 'unknown') return { text: unknownText, front: false }
    if (type === undefined) return { text: piece, front: false }
    const front = first && (model.blankInFront || fewerBlanks) && piece.startsWith(blank)
    // All of several leading blanks are removed if the model does so to texts.
    return { text: (front ? piece.slice(1) : piece).replaceAll(blank, ' '), front: front && !fewerBlanks }
  }
  return {
    pieces(text, blankInFront = model.blankInFront) {
      const found: string[] = []
      let afterUnknown = false
      for (const { text: part, id } of cut(normalise(text, blankInFront))) {
        const isUnknown = id === unknown
        if (isUnknown && byteFallback) for (const byte of encoder.encode(part)) found.push(byteText(byte))
        else if (isUnknown && afterUnknown) found.push((found.pop() ?? '') + part)
        else found.push(part)
        afterUnknown = isUnknown
      }
      return found
    },
    text(pieces) {
      let [text, front] = ['', false]
      let run: number[] = []
      const finish = (): void => {
        text += decoder.decode(Uint8Array.from(run))
        run = []
      }
      for (const piece of pieces) {
        const byte = types.get(piece) === 'byte' ? bytes.get(piece) : undefined
        if (byte !== undefined) {
          run.push(byte)
          continue
        }
        finish()
        const part = ofPiece(piece, !front && text === '')
        text += part.text
        front ||= part.front
      }
      finish()
      return text
    },
  }
}
