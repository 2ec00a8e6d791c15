// Run the tool loop of the AI SDK, streamed, with its OpenAI-compatible provider.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, jsonSchema, streamText, tool } from "ai";

const question = JSON.parse(process.argv[1]);
const weather = { Rome: "21 C", Bonn: "7 C" };
const asked = [];
const provider = createOpenAICompatible({ name: "ocp", baseURL: question.url });
const answered = streamText({
  model: provider(question.model),
  prompt: question.content,
  stopWhen: isStepCount(5),
  tools: {
    get_weather: tool({
      description: "Tell the weather.",
      inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
      execute({ city }) {
        asked.push(city);
        return weather[city];
      },
    }),
  },
});
const text = await answered.text;
console.log(JSON.stringify({ asked, text }));
