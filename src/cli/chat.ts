/** `heddle run MODEL --chat`: a conversation in a terminal, or over a pipe: a line is a message, and its answer is printed as it comes. */
import { createInterface } from 'node:readline'
import { llamaSession } from '../models/llama/chat.js'
import { openLlamaFiles, openLlamaText } from '../models/llama/open_files.js'
import type { CliContext } from './context.js'
import type { GenerateVerbOptions } from './generate.js'
import { runOptionsOf, withLlama } from './llama.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { settingsOf } from './own_settings.js'
import type { TalkOptions } from './talk_options.js'

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
  const text = await openLlamaText(path, (await openLlamaFiles(path, context.signal)).config)
  const { options: generation, stop } = settingsOf(options, text, context.log)
  const { system, templateVars: templateVariables } = options
  await withLlama(path, options, context, async (model) => {
    let reused = 0
    const chat = llamaSession(model, text, {
      ...generation,
      ...runOptionsOf(options, context.signal),
      ...{ stop, system, templateVariables, settings: false },
      reused(tokens: number) {
        reused = tokens
      },
    })
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
