/** Error codes of models and their files: configurations, checkpoints, tokenizers, scales, and generation. */
import { texts } from './text.js'

export const modelCodes = texts({
  'amax.json':
    'A list of largest magnitudes cannot be read. | The file is not JSON of the expected form. | Write {"layers": [[...], ...]}, or plain numbers.',
  'amax.length':
    'A list of largest magnitudes has the wrong length. | It is for a model with other layers or widths, or lacks the weights. | Export it from this model: 80 numbers per layer, then one for each output channel of the weights.',
  'amax.number':
    'An entry of a list of largest magnitudes is not a number. | A text, NaN or a null in the file. | Write finite numbers.',
  'amax.read':
    'A list of largest magnitudes cannot be read. | A wrong path, or no permission. | Name an existing file with --import.',
  'amax.slots':
    'The four numbers of a site do not belong together. | They are the magnitude and numbers derived from it, and one of these does not match. | Export the list again.',
  'amax.weights':
    'A layer has another number of weight channels than expected. | The list is for a model with other widths. | Export it from this model.',
  'beam.history':
    'A step of a beam search continues a row that does not exist. | A kernel of the search returned a wrong row; this is a defect. | Report it with the model and options; --beam 1 avoids it.',
  'beam.width':
    'The number of beams is invalid. | It is 0, or the vocabulary has too few ids for it. | Give a number in the range of the message.',
  'calibrate.cases':
    'There is nothing to calibrate with. | The file of cases is empty. | Give some texts like those that the model will process.',
  'calibrate.finite':
    'An activation is NaN or infinite during calibration. | Values exceed float16, or the weights are damaged. | Calibrate with --dtype f32; if it happens there too, the weights are wrong.',
  'calibrate.input':
    'Calibration is given no source of scales, or two that exclude each other. | The option --cases runs texts, --import reads a list, --from-checkpoint takes scales that training left; the last two also have scales of weights. | Give one of them; --cases also beside --from-checkpoint, for missing scales.',
  'calibrate.missing':
    'Quantisers of the checkpoint have no maximum for some activations. | Training had no quantiser there, such as after the last layer. | Also give --cases, which calibrates the missing ones.',
  'calibrate.option':
    'An option chooses scales for a model whose rows compute their own. | The model quantises activations by rows at run time. | Give --cases and --out only: smoothing uses the channels.',
  'calibrate.percentile':
    'A percentile is given for another method, or is invalid. | The option --percentile applies to --method percentile. | Give more than 0 and at most 100, or leave it out.',
  'calibrate.plans':
    'No plan quantises this model. | Only encoders and LLaMA-like models have int8 plans. | Run the model in floats.',
  'calibrate.state':
    'Quantisers of the checkpoint cannot be read as scales. | There are none, one has another number of maxima than expected, or two of one activation differ. | Save the model after calibration of its quantisers, or calibrate it by --cases.',
  'channels.json': 'A file of channels is not JSON. | It was edited or cut off. | Write it again with heddle calibrate.',
  'channels.read': 'A file of channels cannot be read. | A wrong path, or no permission. | Write one with heddle calibrate.',
  'channels.schema':
    'A value of a file of channels is not as expected. | It was edited, or written by another version. | Write it again with heddle calibrate.',
  'chat.continue':
    'The last message of a conversation cannot be continued. | It has no text, or the chat template changes it. | Pass answer: true for a new answer, or end with a message of the user.',
  'chat.message':
    'A message of a conversation is not of the expected form. | A role or a text is missing, or a part of the content is not a text. | Write [{"role": "user", "content": "..."}].',
  'chat.refused':
    'The chat template of the model refuses the conversation. | Templates demand an order of roles, or have no system role. | Follow what the message quotes.',
  'chat.template':
    'The chat template cannot be used. | The model has none, it has an error, or it runs too long. | Give the prompt as a text or as token ids.',
  'chat.turn':
    'A message is sent before the previous answer is complete. | Two turns of one session overlap. | Wait for the answer, or open another session.',
  'checkpoint.format':
    'The path is not a checkpoint that can be read. | The file has another format, or a folder of weights was meant. | Name a folder, a .safetensors file or a .gguf file.',
  'checkpoint.index':
    'The index of a sharded checkpoint cannot be used. | The JSON is damaged, or maps a tensor to an invalid file name. | Download model.safetensors.index.json again.',
  'checkpoint.option':
    'An option for reading a checkpoint is unknown. | The name is misspelt, or the option belongs to another function. | Use one of the names that the hint lists.',
  'checkpoint.rows':
    'The requested rows do not exist in the tensor. | The range is empty, reversed or too long, or the tensor is a scalar. | Give integers from 0 to the first extent of the shape.',
  'checkpoint.shard':
    'A shard of a checkpoint does not match its index. | A file is missing, incomplete or from another revision. | Download all shards of one revision again.',
  'checkpoint.tensor':
    'The checkpoint has no tensor of this name. | The name is misspelt, or has a prefix in the file. | Use a name that the hint shows, or list the keys of tensors.',
  'config.architecture':
    'heddle does not run the architecture of the model. | config.json names one that is not supported. | Use a model of a family that the hint lists.',
  'config.bad_words':
    'Forbidden words of a model cannot be suppressed. | bad_words_ids has a sequence of several tokens, or it and suppress_tokens leave no token but end ids. | List single tokens.',
  'config.count':
    'A number of the configuration does not match the checkpoint. | config.json belongs to another model, or counts more layers than there are tensors for. | Take configuration and weights from one revision.',
  'config.dtype': 'The configuration states two storage types. | dtype and torch_dtype differ. | Remove one of them.',
  'config.field':
    'A field of the configuration is missing or has a value that is not supported. | An older or changed config.json, or a feature that heddle does not have. | Correct the field that the message names.',
  'config.heads':
    'The numbers of heads are not divisible as required. | hidden_size is not a multiple of the heads, or the heads are not a multiple of the key-value heads. | State head_dim, or correct the numbers.',
  'config.json':
    'config.json is not JSON, or names a field twice. | It was edited or cut off. | Correct it, or download it again.',
  'config.labels':
    'The labels of a classifier are incomplete. | id2label lacks an id, or does not count from 0. | Complete id2label.',
  'config.model_type':
    'heddle does not run the family of the model. | model_type, or general.architecture of a GGUF file, is unknown. | Use a model of a family that the message lists.',
  'config.quantization':
    'heddle does not read the quantisation of the checkpoint. | It is GPTQ, AWQ or another scheme. | Use the float checkpoint, or compressed-tensors with int8 channels.',
  'config.read':
    'config.json cannot be read. | The folder is not a model folder, or the path is wrong. | Name a folder with config.json, weights and tokenizer.',
  'config.rope':
    'The description of the rotary embedding is inconsistent. | Factors are missing, have another length, or two fields disagree. | Take the rope fields from the original config.json.',
  'config.token':
    'A special token is outside the vocabulary. | A pad, start or end id is not in the range. | Correct the id in config.json.',
  'config.vocab':
    'Encoder and decoder have different vocabularies. | heddle runs models that share one. | Use a model with one vocabulary.',
  'config.window':
    'The description of the sliding window is inconsistent. | layer_types, max_window_layers and sliding_window contradict each other. | Take these fields from the original config.json.',
  'embed.pooling': 'The kind of pooling is unknown. | The name is not supported, such as max. | Use mean, cls or last.',
  'embed.settings':
    'A folder of sentence-transformers needs a feature that heddle does not support. | Its files name an unsupported module, pooling or prompt. | Give settings: false, or --no-settings, with a pooling, and do the rest yourself.',
  'generate.beams':
    'The number of beams is invalid. | It is out of range for the vocabulary, or sampling is also requested. | Give a number in the range of the message, or leave out temperature, topK, topP, minP and seed.',
  'generate.diversityRate':
    'The rate of diversity is invalid. | It is out of range, or does not combine with the rule of the search. | Give a number in the range of the message, or leave it out.',
  'generate.earlyStopping':
    'Early stopping has an unknown value. | It is neither true, false nor never. | Give one of the three.',
  'generate.end':
    'The end of a text is undetermined. | The model names no end token, and no limit is given. | Give maxNewTokens, or --max-new-tokens.',
  'generate.forcedBosTokenId':
    'The forced first token of texts is invalid. | It is not an id of the vocabulary. | Give an id of the model.',
  'generate.forcedEosTokenId':
    'The forced last token of texts is invalid. | It is not an id of the vocabulary, or a list is empty. | Give an id of the model, or a list of ids.',
  'generate.lengthPenalty':
    'The length penalty is out of range. | A length to this power would overflow float32. | Give a number in the range of the message.',
  'generate.logprobs': 'The option for log-probabilities of tokens is invalid. | It is not a boolean. | Give true or false.',
  'generate.maxNewTokens':
    'The number of new tokens is out of range. | It is not an integer, or more than the positions of the model. | Give a number in the range of the message.',
  'generate.minNewTokens':
    'The smallest number of new tokens is invalid. | It is more than the largest. | Give a number in the range of the message, or leave it out.',
  'generate.minP':
    'The smallest share of probability is out of range. | minP is not from 0 to 1. | Give a number such as 0.05; 0 turns it off.',
  'generate.noRepeatNgramSize':
    'The size of n-grams that may not repeat is invalid. | It is not an integer. | Give a number such as 3; 0 changes nothing.',
  'generate.repetitionPenalty':
    'The penalty on repeated tokens is invalid. | It is out of range. | Give a number in the range of the message; 1 changes nothing.',
  'generate.returned':
    'The number of returned texts is 0, or larger than the number of beams. | returned counts the best beams. | Give a number from 1 to the beams. For several samples of one case, repeat the case, with a seed for each.',
  'generate.rule':
    'The rule of a beam search is unknown or does not combine with other options. | Only hf supports length penalties and stopping rules. | Choose plain or hf as the message says.',
  'generate.seed':
    'The number of seeds is neither one nor one per case. | A list of seeds has another length than the batch, or a seed is not an integer. | Give one number, or as many as cases.',
  'generate.stop':
    'The list of stop texts cannot be used. | It is too long, or an entry is empty or too long. | Give a few short texts.',
  'generate.temperature':
    'The temperature is out of range. | It is negative, or so small that logits overflow float32. | Give a number in the range of the message; for the most likely token give 0, or leave out every option of sampling.',
  'generate.topK':
    'The number of candidates is out of range. | It is not an integer from 0, or more than the vocabulary. | Give a number in the range of the message; 0 keeps all of them.',
  'generate.topP':
    'The share of probability to sample from is out of range. | topP is not above 0 and at most 1. | Give a number such as 0.9.',
  'generation.nan':
    'The model computed NaN logits. | A weight is NaN or infinite, or values exceed float16. | Try --dtype bf16 or f32.',
  'gguf.changed':
    'A GGUF file changed while it was read. | It is being written or replaced. | Wait until it is complete, and load again.',
  'gguf.dtype':
    'A tensor of a GGUF file has an unsupported type. | It is quantised in unsupported blocks, such as those of 2 or 3 bits. | Convert the model to a type that the message lists.',
  'gguf.duplicate':
    'A GGUF file names a tensor or a key twice. | The file was joined or made by a faulty writer. | Convert the model again.',
  'gguf.header': 'The header of a GGUF file is too long. | The file is damaged, or is not a GGUF file. | Download it again.',
  'gguf.metadata':
    'Metadata of a GGUF file is missing or not supported. | A converter of another version, or a feature that heddle does not have. | Convert the model again, or use its safetensors.',
  'gguf.offsets': 'Tensors of a GGUF file overlap or are not aligned. | The file is damaged. | Download it again.',
  'gguf.part':
    'Parts of a GGUF model are missing or do not belong together. | One was not downloaded, was renamed, or is from another download. | Put all parts into one folder, under their published names.',
  'gguf.read': 'A GGUF file cannot be read. | A wrong path, no permission, or a folder with several. | Name an existing file.',
  'gguf.tensor':
    'A tensor of a GGUF file has an unsupported type or shape. | Its rows are not whole blocks, or rotation factors are not positive. | Convert the model again.',
  'gguf.truncated': 'A GGUF file is shorter than its tensors. | The download may be incomplete. | Download it again.',
  'gguf.version':
    'The version of a GGUF file is not supported. | It is older or newer than the versions that the message names. | Convert the model again.',
  'golden.missing':
    'A folder has no expected results to compare with. | selftest is given a model without goldens. | Write them with test/peers, or leave the model out.',
  'golden.tensor':
    'Expected results lack a tensor or have another type. | They were written by another version. | Write them again with test/peers.',
  'prompt.empty': 'The prompt is empty. | A model continues at least one token. | Give a text or token ids.',
  'prompt.template':
    'A list of messages is given to a model without a chat template. | The model folder has none. | Give a text, or put chat_template.jinja into the folder.',
  'prompt.text':
    'A prompt is not a text. | Token ids or messages are given instead of a text. | Give a text; pass messages to chat, and token ids to model.generate.',
  'prompt.token':
    'A token id of the prompt is outside the vocabulary. | The ids were made by another tokenizer. | Use the tokenizer of the model.',
  'prompt.tokenizer':
    'A text is given to a model without a tokenizer. | The model folder has no tokenizer.json. | Give token ids, or add the file.',
  'punctuation.model':
    'The model does not restore punctuation. | Its labels lack O and marks. | Use a token classifier with such labels.',
  'quant.layout':
    'Weights to quantise have a layout that is not a matrix. | The layout does not have two axes. | Quantise matrices.',
  'quant.maxima':
    'The given maxima do not match the weights. | There are fewer or more than output channels, or one is 0 for weights that are not 0. | Take maxima and weights from one model, or leave the maxima out.',
  'quant.shape':
    'A tensor has another number of values than its matrix. | It belongs to another configuration. | Take weights and configuration from one model.',
  'quant.weights':
    'A weight is NaN or infinite, and cannot be quantised. | The checkpoint is damaged, or overflowed when it was converted. | Download or convert it again.',
  'run.batch':
    'The batch is empty or not a size. | No case is given, or batch is not a positive integer. | Give a case, and an integer from 1.',
  'run.caches': 'The type of caches is unknown. | The option is misspelt. | Write a type that the hint lists.',
  'run.capacity':
    'A case does not fit into the positions of the model or its caches. | Prompt and new tokens together exceed the capacity. | Shorten the prompt, request fewer tokens, or give a larger capacity.',
  'run.case':
    'A case does not have the expected form. | A line of a file is not JSON, or has neither a text nor ids; from Node, a field is misspelt or not an array. | Write one JSON object per line, or { inputIds: [...] }.',
  'run.chunk': 'The size of chunks is invalid. | chunk is not a positive integer. | Give an integer from 1.',
  'run.empty': 'There is nothing to run: a file, a batch or a text is empty. | An empty line or file. | Give at least one text.',
  'run.invariant':
    'The number of rows of invariant runs is out of range. | It has to be equal for all runs, and the model limits it. | Give a number in the range of the message.',
  'run.mask':
    'An attention mask does not fit its case, or the request. | It has another length than the case, contains other values than 0 and 1, removes every token of a source or an embedding, or is given to a model without an encoder. | Give one number for each token, or a row of them for each: 1 keeps a key, 0 removes it.',
  'run.masking':
    'The arithmetic of masks does not fit. | A number is out of its range, or the norms of the model precede attention. | Give numbers in the range of the message, or leave them out.',
  'run.model':
    'There is no model folder at this path. | A wrong path, or the model was not downloaded. | Name a folder with config.json, model.safetensors and tokenizer.json.',
  'run.option':
    'An option is unknown, or does not combine with this model or another option. | It is misspelt, or options of generation, scales or smoothing apply to some families only. | Write the name that the hint gives, or leave out the option.',
  'run.place':
    'A score is requested at a position that a case does not have. | Positions count tokens from 0. | Give positions inside the case.',
  'run.rotation': 'The kind of rotation is unknown. | The option is misspelt. | Write one that the hint lists.',
  'run.scales':
    'Scales do not fit the model or the plan. | They were made for a model with other layers, or do not cover all values that the plan quantises. | Make them with heddle calibrate, and name the file with --scales.',
  'run.sequence':
    'A case has a length that the model cannot run. | It is empty, longer than the positions, or too short to be scored. | Split it, or truncate it with --truncate.',
  'run.token':
    'A token id of a case is outside the vocabulary, or is padding where none is allowed. | The ids were made by another tokenizer, or padded. | Use the tokenizer of the model, and give sequences without padding.',
  'run.truncate':
    'A case cannot be truncated as requested. | Special tokens or the second text leave no room. | Allow more tokens, or truncate another way.',
  'run.type':
    'Types of tokens do not fit the case or the model. | The model has none, or their number differs from the number of tokens. | Give one type for each token, or none.',
  'run.value':
    'A result of a model is NaN or infinite, or an integer given to a run exceeds int32. | An activation exceeds the storage type, weights are damaged, or ids are beyond 2^31. | Try f32, and give integers within int32.',
  'safetensors.changed':
    'A weights file changed while it was read. | It is being written or replaced. | Wait until it is complete, and load again.',
  'safetensors.dtype':
    'A tensor of a weights file has an unsupported type. | The file has types of another tool. | Convert it to a type that the hint lists.',
  'safetensors.duplicate':
    'A weights file names a tensor twice. | The file was joined or made by a faulty writer. | Write it again.',
  'safetensors.header':
    'The header of a weights file is damaged. | It is not JSON of the format, or claims too many bytes; often the file is a Git LFS pointer or an HTML page. | Download it again.',
  'safetensors.offsets':
    'The data of a weights file has gaps or overlaps. | The file is damaged, or has bytes after its tensors. | Download it again.',
  'safetensors.read': 'A weights file cannot be read. | A wrong path, or no permission. | Name an existing file.',
  'safetensors.size': 'The bytes of a tensor do not match its shape. | The file is damaged. | Download it again.',
  'safetensors.tensor':
    'The entry of a tensor in a weights file does not follow the format. | A field is missing or has another type. | Write the file again.',
  'safetensors.truncated': 'A weights file ends too early. | The download may be incomplete. | Download it again.',
  'scales.chain':
    'Two scales of one activation differ. | The output of a layer is the input of the next. | Give both the same scale.',
  'scales.json': 'A file of scales is not JSON. | It was edited or cut off. | Write it again with heddle calibrate.',
  'scales.layers':
    'A file of scales has another number of layers than the model. | It was made for another model. | Calibrate this model.',
  'scales.model':
    'A file of scales belongs to another model. | Its sizes differ. | Calibrate this model, or name the one they were made for.',
  'scales.read': 'A file of scales cannot be read. | A wrong path, or no permission. | Write one with heddle calibrate.',
  'scales.schema':
    'A value of a file of scales is not as expected. | It was edited, or written by another version. | Write it again with heddle calibrate.',
  'scales.site':
    'A file of scales has sites that the model does not have, or lacks some. | It was made for another plan or family. | Calibrate this model.',
  'scales.value': 'A scale is not a finite number from 0. | The calibration met NaN, or the file was edited. | Calibrate again.',
  'scales.weights':
    'Maxima of weights in a file of scales are not as expected. | A matrix has neither one number nor one for each output channel, or one is not a finite number from 0. | Write it again with heddle calibrate.',
  'score.model':
    'The model does not continue texts, so it cannot score them. | It is an encoder or a classifier. | Score with a model that generates.',
  'smooth.alpha': 'The strength of smoothing is out of range. | alpha is not from 0 to 1. | Give a number such as 0.5.',
  'smooth.channels':
    'Channels of an activation that smoothing needs are missing. | The file of channels belongs to another model. | Calibrate this model with heddle calibrate.',
  'smooth.plan':
    'The plan cannot be smoothed, or not everywhere. | It quantises no rows of activations, or different ones in different graphs. | Use a plan that the hint names.',
  'smooth.quantised':
    'Weights that are already int8 cannot be smoothed. | Factors would be rounded a second time. | Smooth the float model that they were made from.',
  'tokenizer.invalid':
    'A file of the tokenizer cannot be used. | It is damaged, or has parts that heddle does not know. | Download it again, or give token ids.',
  'tokenizer.read':
    'The tokenizer cannot be read. | The model folder has no tokenizer.json, and no SentencePiece models of Marian, Pegasus or LLaMA. | Add the file, or give token ids.',
  'tokenizer.time':
    'The tokenizer takes too long for a text. | One of its regular expressions takes exponential time. | Give token ids, or split the text.',
  'weights.adapter':
    'A folder holds an adapter (LoRA and others), and adapters are not read. | It was saved by PEFT, beside or instead of a model. | Merge the adapter into its model, and save that.',
  'weights.prefix':
    'Some tensor names of a checkpoint have a prefix that others lack. | The model is a part of a larger one, such as one of texts and pictures. | Save the part by itself, without the prefix.',
  'weights.dtype':
    'A weight has another storage type than expected. | The checkpoint is partly quantised, or belongs to another configuration. | Take weights and configuration from one model.',
  'weights.missing':
    'A weight of the model is not in the checkpoint. | The weights belong to another architecture, or tied weights are not declared as tied. | Take weights and configuration from one model.',
  'weights.shape':
    'A weight has another shape than the configuration says. | The checkpoint belongs to a model of other sizes. | Take weights and configuration from one model.',
  'weights.unknown':
    'The checkpoint has a weight that the model does not use. | The configuration leaves it out, such as biases, or it belongs to another architecture. | Check the fields that the message names: nothing of a checkpoint is ignored.',
  'weights.value':
    'A weight is NaN or infinite. | The checkpoint is damaged, or overflowed when it was converted. | Download or convert it again.',
})
