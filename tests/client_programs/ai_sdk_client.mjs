// Ask through the AI SDK with its OpenAI-compatible provider: questions as an argument, answers as JSON.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

async function answer(ask, seen) {
  const provider = createOpenAICompatible({
    name: "ocp",
    baseURL: ask.url,
    apiKey: ask.key,
    headers: ask.headers,
    includeUsage: true,
  });
  const question = { model: provider(ask.model), prompt: ask.content };
  if (ask.stream) {
    const answered = streamText({ ...question, onError() {} });
    for await (const part of answered.fullStream) {
      if (part.type === "text-delta" && part.text) seen.pieces.push(part.text);
      if (part.type === "error") throw part.error;
      if (part.type === "finish") {
        seen.finish = part.finishReason;
        seen.tokens = [part.totalUsage.inputTokens, part.totalUsage.outputTokens];
      }
    }
  } else {
    const answered = await generateText(question);
    seen.pieces.push(answered.text);
    seen.finish = answered.finishReason;
    seen.tokens = [answered.usage.inputTokens, answered.usage.outputTokens];
  }
}

const answers = [];
for (const ask of JSON.parse(process.argv[1])) {
  const seen = { pieces: [], finish: null, tokens: null, error: null };
  try {
    await answer(ask, seen);
  } catch (error) {
    seen.error = [error.name, error.statusCode ?? null, error.data?.error?.code ?? null];
  }
  answers.push(seen);
}
console.log(JSON.stringify(answers));
