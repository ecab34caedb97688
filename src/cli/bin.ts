#!/usr/bin/env node
/** The executable: runs the command line given to the process. */
import { describeFailure } from './failure.js'
import { main } from './main.js'

// A reader that has seen enough (`heddle inspect … | head`) is not an error; a full disk is.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  const { exitCode, text } = describeFailure(error, { verbose: process.argv.includes('--verbose'), cancelled: false })
  process.stderr.write(text)
  process.exit(exitCode)
})

// Nobody is left to tell when a reader of the messages has gone.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(3)
})

process.exitCode = await main(process.argv.slice(2))
