// Registers the SageMaker door with the AWS front.
#pragma once

#include "door/aws/aws_front.h"
#include "door/context.h"

namespace athanor {

void RegisterSageMaker(DoorContext& context, AwsFront& front);

}  // namespace athanor
