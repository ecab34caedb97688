/** Recognises decoder-only models by their files, so that callers can select the right opener. */
import { join } from 'node:path'
import { z } from 'zod'
import { readConfigFile } from '../checkpoint/config_file.js'
import { ggufPath } from '../checkpoint/gguf_parts.js'
import { isLlamaType } from '../models/llama/families.js'

const modelType = z.looseObject({ model_type: z.string().optional() })

/** True if a path is a LLaMA-like model: a GGUF file, or a folder by its configuration. @throws usage `gguf.read`, `config.read`, `config.json` */
export async function continuesText(folder: string): Promise<boolean> {
  if ((await ggufPath(folder)) !== undefined) return true
  const parsed = modelType.safeParse(await readConfigFile(join(folder, 'config.json')))
  return parsed.success && isLlamaType(parsed.data.model_type)
}
