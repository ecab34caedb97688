/** `heddle run MODEL --chat`: a conversation in a terminal or over a pipe. Each line is a message; its answer is streamed to the output. */
import { createInterface } from 'node:readline'
import { llamaSession } from '../models/llama/chat.js'
import { openLlamaFiles, openLlamaText } from '../models/llama/open_files.js'
import type { CliContext } from './context.js'
import type { GenerateVerbOptions } from './generate.js'
import { runOptionsOf, withLlama } from './llama.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { settingsOf } from './own_settings.js'
import type { TalkOptions } from './talk_options.js'

/** Input lines that are commands, not messages. */
const commands = { reset: '/reset', leave: '/exit' } as const

/** Lines of the standard input, echoed by the terminal. */
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
 * Answers lines until they end. Each answer is streamed to the output, followed by a newline. Verbose mode logs the tokens found in the caches.
 * @throws usage `run.option`, `prompt.*`, `chat.*`, `generate.*`, `run.capacity`; environment for missing tools or devices
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
    context.log(
      `each line is a message; ${commands.reset} clears the conversation, ${commands.leave} or the end of the input leaves\n`,
    )
    for await (const line of lines) {
      const message = line.trim()
      if (message === commands.leave) break
      if (message === commands.reset) chat.reset()
      if (message === '' || message === commands.reset) continue
      const answer = chat.say(line, context.signal)
      for await (const piece of answer) context.out(piece)
      context.out('\n')
      if (context.verbose) context.log(`${reused} tokens were cached\n`)
    }
    context.signal.throwIfAborted()
  })
}
