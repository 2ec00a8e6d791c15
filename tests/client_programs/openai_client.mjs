// Ask through the official client for Node: questions as an argument, answers on standard output, as JSON.

import OpenAI from "openai";

async function answer(ask, seen) {
  const client = new OpenAI({ baseURL: ask.url, apiKey: ask.key, defaultHeaders: ask.headers });
  const question = { model: ask.model, messages: [{ role: "user", content: ask.content }] };
  const answered = ask.stream
    ? await client.chat.completions.create({ ...question, stream: true, stream_options: { include_usage: true } })
    : [await client.chat.completions.create(question)];
  for await (const part of answered) {
    for (const choice of part.choices) {
      const text = (choice.delta ?? choice.message).content;
      if (text) seen.pieces.push(text);
      seen.finish = choice.finish_reason ?? seen.finish;
    }
    if (part.usage) seen.tokens = [part.usage.prompt_tokens, part.usage.completion_tokens];
  }
}

const answers = [];
for (const ask of JSON.parse(process.argv[1])) {
  const seen = { pieces: [], finish: null, tokens: null, error: null };
  try {
    await answer(ask, seen);
  } catch (error) {
    seen.error = [error.constructor.name, error.status ?? null, error.code ?? null];
  }
  answers.push(seen);
}
console.log(JSON.stringify(answers));
