// Run the tool loop of the official client for Node.

import OpenAI from "openai";

const question = JSON.parse(process.argv[1]);
const weather = { Rome: "21 C", Bonn: "7 C" };
const asked = [];
const client = new OpenAI({ baseURL: question.url, apiKey: "none" });
const runner = client.chat.completions.runTools({
  model: question.model,
  messages: [{ role: "user", content: question.content }],
  stream: true,
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Tell the weather.",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        parse: JSON.parse,
        function({ city }) {
          asked.push(city);
          return weather[city];
        },
      },
    },
  ],
});
console.log(JSON.stringify({ asked, text: await runner.finalContent() }));
