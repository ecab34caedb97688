/** `heddle run MODEL --chat`: a conversation in a terminal, or over a pipe: a line is a message, and its answer is printed as it comes. */
import { createInterface } from 'node:readline'
import { usageError } from '../errors.js'
import type { Llama } from '../models/llama/llama_types.js'
import { openLlamaFiles, openLlamaText } from '../models/llama/open_files.js'
import { openChat } from '../text/chat_session.js'
import type { CliContext } from './context.js'
import type { GenerateVerbOptions } from './generate.js'
import { runOptionsOf, withLlama } from './llama.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { settingsOf, type TalkOptions } from './talk_options.js'

/** Room for a conversation where nothing says how much: caches of long models would not fit beside their weights. */
const usualCapacity = 4096

/** Tokens of an answer where nothing says how many. */
const usualAnswer = 512

/** Lines that are said to the terminal, not to the model. */
const commands = { reset: '/reset', leave: '/exit' } as const

/** Lines of the standard input. The terminal shows what is typed. */
async function* typedLines(context: CliContext): AsyncGenerator<string, void> {
  const lines = createInterface({ input: process.stdin })
  const stop = (): void => lines.close()
  context.signal.addEventListener('abort', stop, { once: true })
  try {
    yield* lines
  } finally {
    context.signal.removeEventListener('abort', stop)
    lines.close()
  }
}

/**
 * Talks until the lines end. Each answer goes to the output as it comes, with a line behind it; what was found in the caches is told.
 * @throws usage `run.option`, `prompt.*`, `chat.*`, `generate.*`, `run.capacity`; environment for what the machine lacks
 */
export async function talk(
  path: string,
  options: GenerateVerbOptions & LlamaFlagOptions & TalkOptions,
  context: CliContext,
  lines: AsyncIterable<string> = typedLines(context),
): Promise<void> {
  const { config } = await openLlamaFiles(path, context.signal)
  const text = await openLlamaText(path, config)
  const { options: asked, stop } = settingsOf(options, text, context.log)
  if (asked.beams !== undefined && asked.beams > 1) {
    throw usageError('run.option', '--beam gives whole texts, and an answer is shown as it comes', { hint: 'leave --beam out' })
  }
  const capacity = options.capacity ?? Math.min(config.positions, usualCapacity)
  const maxNewTokens = asked.maxNewTokens ?? Math.min(usualAnswer, Math.ceil(capacity / 2))
  await withLlama(path, options, context, async (model) => {
    let reused = 0
    const generator = {
      generate: (ids: readonly number[]) =>
        idsOf(model, ids, {
          ...asked,
          ...{ maxNewTokens, capacity, reuse: true },
          reused(tokens) {
            reused = tokens
          },
          ...runOptionsOf(options, context.signal),
        }),
    }
    const { system } = options
    const chat = openChat({ reader: text, generator, system, stop })
    context.log(`a line is a message; ${commands.reset} forgets, ${commands.leave} or the end of the input leaves\n`)
    for await (const line of lines) {
      const said = line.trim()
      if (said === commands.leave) break
      if (said === commands.reset) chat.reset()
      if (said === '' || said === commands.reset) continue
      const answer = chat.say(line, context.signal)
      for await (const piece of answer) context.out(piece)
      context.out('\n')
      if (context.verbose) context.log(`${reused} tokens were read before\n`)
    }
    context.signal.throwIfAborted()
  })
}

/** The ids of one text. */
async function* idsOf(model: Llama, inputIds: readonly number[], options: Parameters<Llama['stream']>[1]) {
  for await (const { ids } of model.stream([{ inputIds }], options)) yield ids
}
